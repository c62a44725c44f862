import MartletModel
import MartletRules
import SQLiteKit
import SQLiteRecords

extension CommandDescription {
    static let rulesCheck = CommandDescription(
        name: "rules check",
        summary: "read a rules file of policies, and say what each policy reads",
        discussion: """
            The file is SQL: CREATE POLICY, GRANT, REVOKE and ALTER TABLE … ROW LEVEL SECURITY, as
            PostgreSQL has them. A fault is told with its line, its column and what to write. Of
            each policy the command says which rows of other types it looks up, and by which column.
            Servers do not take such files yet.
            """,
        arguments: [
            Argument(name: "FILE", help: "the rules file"),
            Argument(name: "SCHEMA", help: "a file with the tables' CREATE statements"),
        ],
        examples: [
            Example("rules check rules.sql schema.sql", "in continuous integration")
        ]
    ) { arguments, console in
        let program = try read(arguments)
        if arguments.isJSON {
            console.print(json(program).description)
        } else {
            for line in lines(program) { console.print(line) }
        }
        return .done
    }

    private static func read(_ arguments: ParsedArguments) throws -> RulesProgram {
        let path = arguments.positional[0]
        let connection = try Connection(path: ":memory:")
        let schema = try SchemaMigration.apply(
            script: SchemaFiles.read(arguments.positional[1]), to: connection)
        do {
            return try RulesProgram(try SchemaFiles.read(path), schema: schema)
        } catch let fault as RulesFault {
            throw CommandError("\(path), \(fault).")
        }
    }

    private static func lines(_ program: RulesProgram) -> [String] {
        program.schema.types.enumerated().flatMap { index, type -> [String] in
            guard program.isSecured[index] else {
                return ["\(type.name): without row-level security"]
            }
            let policies = program.policies[index]
            guard !policies.isEmpty else {
                return ["\(type.name): no policy, so nobody sees a row"]
            }
            return ["\(type.name):"] + policies.map { "  " + line($0, program) }
        }
    }

    private static func line(_ policy: RulesProgram.Policy, _ program: RulesProgram) -> String {
        var words = [policy.command?.rawValue.uppercased() ?? "ALL"]
        if !policy.isPermissive { words.append("restrictive") }
        if !policy.roles.isEmpty {
            words.append("to " + policy.roles.sorted().joined(separator: ", "))
        }
        let sources = program.sources(of: policy).map { source in
            source.column.map { "looks up \(source.type) by \($0)" }
                ?? "reads all of \(source.type), which is slow"
        }
        let reads = sources.isEmpty ? "the row alone" : sources.joined(separator: "; ")
        return "\(policy.name) (\(words.joined(separator: ", ")), line \(policy.line)): \(reads)"
    }

    private static func json(_ program: RulesProgram) -> JSONText {
        let types = program.schema.types.enumerated().map { index, type in
            JSONText.object([
                ("type", .text(type.name)), ("secured", .boolean(program.isSecured[index])),
                ("policies", .list(program.policies[index].map { json($0, program) })),
            ])
        }
        return .object([("types", .list(types))])
    }

    private static func json(_ policy: RulesProgram.Policy, _ program: RulesProgram) -> JSONText {
        let reads = program.sources(of: policy).map { source in
            JSONText.object([("type", .text(source.type)), ("by", .optional(source.column))])
        }
        return .object([
            ("name", .text(policy.name)), ("line", .integer(Int64(policy.line))),
            ("permissive", .boolean(policy.isPermissive)),
            ("command", .text(policy.command?.rawValue ?? "all")),
            ("roles", .list(policy.roles.sorted().map { .text($0) })), ("reads", .list(reads)),
        ])
    }
}
