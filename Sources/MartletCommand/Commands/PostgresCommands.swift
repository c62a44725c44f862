import Foundation
import MartletModel
import MartletPostgres
import PostgresKit

extension CommandDescription {
    /// The option for the address of the database.
    static let postgresOption = Option(
        name: "postgres", value: "URL",
        help: "the database; MARTLET_POSTGRES stands in for it, and others do not see it there")

    static let postgresInit = CommandDescription(
        name: "postgres init",
        summary: "make a data set in a PostgreSQL database",
        discussion: """
            Runs a script of PostgreSQL's SQL and synchronises every table it makes, all in one
            transaction. Foreign keys between them become deferrable. Martlet's own tables are made in
            a schema of their own. docs/postgresql.md says what a table needs.
            """,
        options: [
            postgresOption,
            Option(name: "name", value: "NAME", help: "the data set's name"),
            Option(name: "schema", value: "FILE", help: "CREATE statements, in PostgreSQL's SQL"),
            captureOption,
            Option(name: "dry-run", help: "say what would be done, and undo it"),
        ],
        examples: [
            Example(
                "postgres init --postgres postgresql://app@localhost/club --name club --schema"
                    + " schema.sql", "tables, and a data set of them")
        ]
    ) { arguments, console in
        let path = try required("schema", arguments)
        guard let script = FileManager.default.contents(atPath: path) else {
            throw CommandError("The schema file \(path) cannot be read.")
        }
        let capture = try capture(arguments)
        let connection = try connection(arguments)
        if let capture { try CaptureSwitch(on: connection).check(capture) }
        let isDryRun = arguments.has("dry-run")
        var report = try PostgresInit(on: connection, now: now()).make(
            String(decoding: script, as: UTF8.self), name: try required("name", arguments),
            isDryRun: isDryRun)
        if let capture, !isDryRun {
            report.steps += try CaptureSwitch(on: connection).change(to: capture).steps
        }
        show(report, isDryRun: isDryRun, arguments, console)
        return .done
    }

    static let postgresAdopt = CommandDescription(
        name: "postgres adopt",
        summary: "synchronise tables of a PostgreSQL database",
        discussion: """
            Takes tables as they are: their rows become entries of the log, so that devices get them,
            and triggers note what other programs write. Anything that stands in the way is said, all
            of it at once, with what to do. Adding tables to a data set, and naming those it has
            again, is fine: their triggers are recreated and new columns announced. With --cdc and
            without --tables it only changes how other programs' writes are found. Tables with
            row-level security need --rules: if FILE does not exist, the policies and privileges of all
            tables are written into it; if it exists, its policies are taken. Serve them with
            martlet serve --rules FILE.
            """,
        options: [
            postgresOption,
            Option(name: "name", value: "NAME", help: "the data set's name"),
            Option(
                name: "tables", value: "A,B,…", help: "tables, with their schemas where needed"),
            Option(
                name: "truncate", value: "WHAT",
                help: "refuse (the default), or delete: TRUNCATE empties the table on devices too"),
            Option(
                name: "surrogate", value: "A,B,…",
                help: "tables that get a key column where they have none of one column"),
            Option(
                name: "rules", value: "FILE",
                help: "a rules file: made of the tables' row-level security, or taken if it exists"),
            captureOption,
            Option(name: "dry-run", help: "say what would be done; nothing is changed or locked"),
        ],
        examples: [
            Example(
                "postgres adopt --postgres postgresql://app@localhost/club --name club --tables"
                    + " teams,players --dry-run", "what it would add where"),
            Example(
                "postgres adopt --name club --tables teams,players,crm.notes",
                "with the address in MARTLET_POSTGRES"),
            Example(
                "postgres adopt --name club --tables teams,players --rules rules.sql",
                "tables with row-level security; rules.sql gets their policies"),
        ]
    ) { arguments, console in
        let capture = try capture(arguments)
        let isDryRun = arguments.has("dry-run")
        if let capture, arguments.value("tables") == nil {
            let change = CaptureSwitch(on: try connection(arguments))
            let report = try isDryRun ? change.plan(capture) : change.change(to: capture)
            show(report, isDryRun: isDryRun, arguments, console)
            return .done
        }
        var request = PostgresAdoption.Request(
            name: try required("name", arguments), tables: list(try required("tables", arguments)))
        if let word = arguments.value("truncate") {
            guard let truncation = Truncation(rawValue: word) else {
                throw UsageError("--truncate takes refuse or delete.", command: "postgres adopt")
            }
            request.truncation = truncation
        }
        request.surrogates = Set(list(arguments.value("surrogate") ?? ""))
        request.rules = try rules(arguments.value("rules"))
        let connection = try connection(arguments)
        if let capture { try CaptureSwitch(on: connection).check(capture) }
        let adoption = PostgresAdoption(on: connection, now: now())
        var report =
            try isDryRun
            ? adoption.plan(request) : adopt(adoption, request, arguments.value("rules"))
        if let capture, !isDryRun {
            report.steps += try CaptureSwitch(on: connection).change(to: capture).steps
        }
        show(report, isDryRun: isDryRun, arguments, console)
        return .done
    }

    static let postgresRelease = CommandDescription(
        name: "postgres release",
        summary: "take Martlet out of a PostgreSQL database",
        discussion: """
            Removes the triggers and the schema “_martlet” with the log in it. The tables and their rows
            stay as they are. Devices keep what they have and cannot send to this data set any more.
            Stop its servers first. Without --yes it only says what it would do.
            """,
        options: [
            postgresOption,
            Option(name: "name", value: "NAME", help: "the data set's name, to be sure"),
            Option(name: "drop-surrogates", help: "drop the key columns that adoption added"),
            Option(name: "dry-run", help: "say what would be done, as without --yes"),
            Option(name: "yes", help: "do it"),
        ],
        examples: [
            Example("postgres release --postgres postgresql://app@localhost/club", "what would go"),
            Example("postgres release --name club --yes", "do it"),
        ]
    ) { arguments, console in
        let release = PostgresRelease(on: try connection(arguments))
        let name = arguments.value("name")
        let drops = arguments.has("drop-surrogates")
        let isDryRun = arguments.has("dry-run") || !arguments.has("yes")
        let steps =
            try isDryRun
            ? release.plan(name: name, dropsSurrogates: drops)
            : release.release(name: name, dropsSurrogates: drops)
        let report = PostgresAdoption.Report(steps: steps)
        show(report, isDryRun: isDryRun, arguments, console)
        if isDryRun { console.note("Nothing was changed; --yes does it.") }
        return .done
    }

    static let postgresSchema = CommandDescription(
        name: "postgres schema",
        summary: "print the tables of a data set in PostgreSQL for devices",
        discussion: """
            Prints CREATE TABLE statements in SQLite's words: the schema that an app's devices use.
            What devices do not get, and why, goes to standard error.
            """,
        options: [postgresOption],
        examples: [
            Example(
                "postgres schema --postgres postgresql://app@localhost/club > schema.sql",
                "for `martlet init` or an app")
        ]
    ) { arguments, console in
        let schema = try PostgresSchema.read(try connection(arguments))
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("ddl", .text(schema.deviceScript)),
                    ("hash", .text(schema.schema.fingerprint)),
                    ("notes", .list(schema.notes.map { .text($0) })),
                ]).description)
        } else {
            console.write(schema.deviceScript)
            for note in schema.notes { console.note(note) }
        }
        return .done
    }

    private static let captureOption = Option(
        name: "cdc", value: "HOW",
        help: "how other programs' writes are found: triggers (the default), or logical decoding")

    /// Returns the way of capturing external writes; nil if the arguments do not name one.
    private static func capture(_ arguments: ParsedArguments) throws -> ExternalCapture? {
        guard let word = arguments.value("cdc") else { return nil }
        guard let capture = ExternalCapture(rawValue: word) else {
            throw UsageError("--cdc takes triggers or logical.", command: arguments.command)
        }
        return capture
    }

    /// Opens a connection for work that may take long.
    static func connection(_ arguments: ParsedArguments) throws -> PostgresConnection {
        let environment = ProcessInfo.processInfo.environment["MARTLET_POSTGRES"]
        guard let url = arguments.value("postgres") ?? environment, !url.isEmpty else {
            throw UsageError(
                "\(arguments.command) needs --postgres URL, or MARTLET_POSTGRES.",
                command: arguments.command)
        }
        return try PostgresConnection(
            PostgresAddress(url),
            PostgresOptions(
                statement: nil, lock: .seconds(30), idleInTransaction: nil, answer: nil,
                allowsHiddenRows: false,
                name: "martlet \(arguments.command)"))
    }

    /// Returns the rules of a file that exists, or else those of the database.
    private static func rules(_ path: String?) throws -> PostgresAdoption.Rules {
        guard let path else { return .none }
        switch path.isEmpty ? .typeDirectory : SchemaFiles.kind(of: path) {
        case .typeRegular?, .typeDirectory?: return .file(try SchemaFiles.read(path))
        case nil:
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
            guard SchemaFiles.kind(of: folder) == .typeDirectory else {
                throw CommandError(
                    "The rules file \(path) cannot be written: make the folder \(folder) first.")
            }
            return .ofDatabase
        default:
            throw CommandError(
                "\(path) is no regular file; name a rules file, or one that is to be made.")
        }
    }

    /// Adopts tables, and writes the rules file that is made of their policies. Without the adoption
    /// there is no file, because the next attempt would take it for the operator's.
    private static func adopt(
        _ adoption: PostgresAdoption, _ request: PostgresAdoption.Request, _ path: String?
    ) throws -> PostgresAdoption.Report {
        var written: String?
        do {
            return try adoption.adopt(request) { text in
                guard let path else { return }
                do {
                    try Data(text.utf8).write(
                        to: URL(fileURLWithPath: path), options: .withoutOverwriting)
                } catch {
                    throw CommandError(
                        "The rules file \(path) cannot be written: \(error.localizedDescription)")
                }
                written = path
            }
        } catch {
            if let written { try? FileManager.default.removeItem(atPath: written) }
            throw error
        }
    }

    private static func required(
        _ name: String, _ arguments: ParsedArguments
    ) throws -> String {
        guard let value = arguments.value(name), !value.isEmpty else {
            throw UsageError("\(arguments.command) needs --\(name).", command: arguments.command)
        }
        return value
    }

    private static func list(_ text: String) -> [String] {
        text.split(separator: ",").map {
            $0.trimmingCharacters(in: .whitespaces)
        }.filter { !$0.isEmpty }
    }

    private static func now() -> Int64 {
        Int64(Date().timeIntervalSince1970 * 1_000)
    }

    private static func show(
        _ report: PostgresAdoption.Report, isDryRun: Bool, _ arguments: ParsedArguments,
        _ console: Console
    ) {
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("done", .boolean(!isDryRun)), ("rows", .integer(report.rows)),
                    ("steps", .list(report.steps.map { .text($0) })),
                    ("notes", .list(report.notes.map { .text($0) })),
                    ("rules", .optional(report.rules)),
                ]).description)
            return
        }
        console.print(isDryRun ? "This would:" : "Done:")
        for step in report.steps { console.print("- \(step)") }
        if isDryRun, let rules = report.rules { console.print(rules) }
        for note in report.notes { console.note("Note: \(note)") }
    }
}
