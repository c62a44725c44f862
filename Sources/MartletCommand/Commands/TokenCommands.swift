import Foundation
import MartletServer
import PostgresKit

extension CommandDescription {
    private static let dataOption = Option(
        name: "data", value: "DIR", help: "the server's data folder")

    static let tokenCreate = CommandDescription(
        name: "token create",
        summary: "make a token for a data set",
        discussion: """
            Prints the token, this once; the server keeps only its hash. Running servers take it
            from the next request on: the one of the data folder, or all of the database.
            """,
        arguments: [
            Argument(name: "DATASET", help: "the data set's name: a-z, 0-9, “.”, “_”, “-”")
        ],
        options: [
            dataOption, postgresOption,
            Option(name: "user", value: "NAME", help: "whose it is"),
            Option(
                name: "role", value: "ROLE", help: "for the rules; may be repeated", repeats: true),
            Option(name: "device", value: "NAME", help: "what the person calls the device"),
        ],
        examples: [
            Example("token create team --data data > token", "a token that may do everything"),
            Example(
                "token create team --data data --user ines --role coach --device tablet",
                "one for the rules file to judge"),
        ]
    ) { arguments, console in
        let made = try store(arguments).create(
            dataSet: arguments.positional[0], user: arguments.value("user"),
            roles: arguments.values["role"] ?? [], device: arguments.value("device"), now: now())
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("token", .text(made.token)), ("record", json(made.record)),
                ]).description)
        } else {
            console.print(made.token)
            console.note("Token \(made.record.identifier) is shown this once; keep it in a file.")
        }
        return .done
    }

    static let tokenList = CommandDescription(
        name: "token list",
        summary: "list the tokens, without the tokens themselves",
        options: [dataOption, postgresOption],
        examples: [Example("token list --data data", "identifier, data set, user, roles, device")]
    ) { arguments, console in
        let records = try store(arguments, makesFolder: false).list()
        if arguments.isJSON {
            console.print(JSONText.object([("tokens", .list(records.map(json)))]).description)
        } else {
            for record in records { console.print(line(record)) }
            if records.isEmpty {
                console.note("There are no tokens; make one: martlet token create")
            }
        }
        return .done
    }

    static let tokenRevoke = CommandDescription(
        name: "token revoke",
        summary: "make a token worthless, from the next request on",
        arguments: [Argument(name: "ID", help: "the identifier that `martlet token list` shows")],
        options: [dataOption, postgresOption],
        examples: [Example("token revoke 5f3a90c1d2e4 --data data", "the device was lost")]
    ) { arguments, console in
        let identifier = arguments.positional[0]
        guard try store(arguments, makesFolder: false).revoke(identifier, now: now()) else {
            throw CommandError(
                "No good token is called \(identifier). See: martlet token list --data DIR")
        }
        console.note("Token \(identifier) is revoked.")
        return .done
    }

    /// - Parameter makesFolder: True to create a missing data folder; false to refuse it.
    private static func store(
        _ arguments: ParsedArguments, makesFolder: Bool = true
    ) throws -> any TokenKeeper {
        if let data = arguments.value("data") {
            guard makesFolder || FileManager.default.fileExists(atPath: data) else {
                throw CommandError("There is no folder “\(data)”; check --data.")
            }
            return try TokenStore(directory: data)
        }
        let environment = ProcessInfo.processInfo.environment["MARTLET_POSTGRES"]
        guard let url = arguments.value("postgres") ?? environment, !url.isEmpty else {
            throw UsageError(
                "\(arguments.command) needs --data DIR, the server's data folder, or --postgres URL.",
                command: arguments.command)
        }
        return try DatabaseTokens(PostgresAddress(url))
    }

    private static func now() -> Int64 {
        Int64((Date().timeIntervalSince1970 * 1_000).rounded())
    }

    private static func line(_ record: TokenRecord) -> String {
        var words = [
            record.identifier, record.dataSet, "made \(StatusReport.time(record.created))",
        ]
        if let user = record.user { words.append("user \(user)") }
        if !record.roles.isEmpty { words.append("roles \(record.roles.joined(separator: ", "))") }
        if let device = record.device { words.append("device \(device)") }
        if let revoked = record.revoked { words.append("revoked \(StatusReport.time(revoked))") }
        return words.joined(separator: "  ")
    }

    private static func json(_ record: TokenRecord) -> JSONText {
        .object([
            ("identifier", .text(record.identifier)), ("dataSet", .text(record.dataSet)),
            ("user", .optional(record.user)), ("roles", .list(record.roles.map { .text($0) })),
            ("device", .optional(record.device)),
            ("created", .text(StatusReport.time(record.created))),
            ("revoked", .optional(record.revoked.map(StatusReport.time))),
        ])
    }
}
