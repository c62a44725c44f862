import Foundation
import MartletPostgres
import MartletServer
import MartletServerCore
import PostgresKit

extension CommandDescription {
    static let doctor = CommandDescription(
        name: "doctor",
        summary: "look what is wrong with a server's storage, and how to mend it",
        discussion: """
            Looks at settings, triggers, tables, keys, indexes, clocks, rights and room, and says of each
            thing that is wrong what it is, why it matters and what to do. It changes nothing, and servers
            may run. Ends with 1 where something is wrong now; what may become so is a warning.
            """,
        options: [
            Option(name: "data", value: "DIR", help: "the server's data folder"), postgresOption,
            Option(
                name: "rules", value: "FILE",
                help: "with --postgres: the servers' rules file, compared with the tables"),
        ],
        examples: [
            Example("doctor --data data", "the files of a data folder"),
            Example("doctor --postgres postgresql://app@localhost/club", "a database"),
            Example(
                "doctor --postgres postgresql://app@localhost/club --rules rules.sql",
                "a database whose servers have policies"),
        ]
    ) { arguments, console in
        let found = try findings(arguments)
        let isWrong = found.contains { $0.severity == .error }
        if arguments.isJSON {
            let list = found.map { finding in
                JSONText.object([
                    ("severity", .text(finding.severity.rawValue)),
                    ("check", .text(finding.check)), ("what", .text(finding.what)),
                    ("why", .text(finding.why)), ("fix", .text(finding.fix)),
                ])
            }
            console.print(
                JSONText.object([("ok", .boolean(!isWrong)), ("findings", .list(list))])
                    .description)
        } else {
            for finding in found {
                console.print(
                    """
                    \(finding.severity.rawValue): \(finding.what)
                      why: \(finding.why)
                      fix: \(finding.fix)
                    """)
            }
            if found.isEmpty { console.print("Nothing is wrong.") }
        }
        return isWrong ? .failed : .done
    }

    private static func findings(_ arguments: ParsedArguments) throws -> [Finding] {
        let now = Int64((Date().timeIntervalSince1970 * 1_000).rounded())
        let environment = ProcessInfo.processInfo.environment["MARTLET_POSTGRES"]
        if let data = arguments.value("data") {
            guard arguments.value("rules") == nil else {
                throw UsageError("doctor takes --rules with --postgres only.", command: "doctor")
            }
            return try EmbeddedDoctor(directory: data, now: now).findings()
        }
        guard let url = arguments.value("postgres") ?? environment, !url.isEmpty else {
            throw UsageError("doctor needs --data DIR or --postgres URL.", command: "doctor")
        }
        let rules = try arguments.value("rules").map { path in
            Array(try SchemaFiles.read(path).utf8)
        }
        let connection = try PostgresConnection(
            PostgresAddress(url), PostgresOptions(readOnly: true, name: "martlet doctor"))
        defer { connection.close() }
        let doctor = PostgresDoctor(
            on: connection, now: now,
            policies: rules.map { bytes in
                { try RulesFile.read(bytes, schema: $0).policies }
            })
        let found = try doctor.findings().map {
            Finding(
                $0.isError ? .error : .warning, $0.check, what: $0.what, why: $0.why, fix: $0.fix)
        }
        // The database server does not report the free space. Its disk may be one of this machine.
        guard let directory = try doctor.localDirectory() else { return found }
        return found + EmbeddedDoctor.room(in: directory, for: try doctor.databaseBytes() ?? 0)
    }
}
