import MartletModel
import MartletRules
import MartletServer
import SQLiteKit
import SQLiteRecords

/// The rules file and the schema of a command, read together.
struct PolicyFiles {
    let program: RulesProgram
    /// A database in memory with the schema's tables, which are empty.
    let connection: Connection

    /// Reads the files that the first two arguments name.
    /// - Throws: `CommandError`, which names the file, the line and the column.
    init(_ arguments: ParsedArguments, code: ExitCode = .failed) throws {
        let (path, schemaPath) = (arguments.positional[0], arguments.positional[1])
        connection = try Connection(path: ":memory:")
        let script = try SchemaFiles.read(schemaPath, code: code)
        let text = try SchemaFiles.read(path, code: code)
        if text.contains(Self.tables), !script.contains(Self.tables),
            script.contains(#/(?i)\b(CREATE\s+POLICY|GRANT)\b/#)
        {
            throw CommandError(
                "\(path) has tables, and \(schemaPath) has policies: name the rules file first.",
                code: code)
        }
        let connection = connection
        let schema = try Self.naming(schemaPath, code) {
            try SchemaMigration.apply(script: script, to: connection)
        }
        program = try Self.program(text, path, schema: schema, code)
    }

    /// A statement of a schema.
    private static var tables: Regex<Substring> { #/(?i)\bCREATE\s+TABLE\b/# }

    /// Returns the policies of a rules file.
    /// - Throws: `CommandError`, which names the file, the line and the column.
    static func program(
        _ text: String, _ path: String, schema: Schema, _ code: ExitCode = .failed
    ) throws -> RulesProgram {
        try naming(path, code) {
            do {
                return try RulesFile.policies(text, schema: schema)
            } catch is RulesFile.ShowsNothing {
                throw CommandError("\(path) \(RulesFile.showsNothing)", code: code)
            }
        }
    }

    /// Calls a closure. A fault of the file becomes a sentence that names the file.
    static func naming<Result>(
        _ path: String, _ code: ExitCode, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let fault as RulesFault {
            throw CommandError("\(path), \(fault).", code: code)
        } catch let error as CommandError {
            throw error
        } catch {
            throw CommandError("\(path): \(FailureReport(error).sentence)", code: code)
        }
    }
}
