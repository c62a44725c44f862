import Foundation
import MartletModel
import MartletRules
import MartletServer
import MartletServerCore

extension CommandDescription {
    static let explain = CommandDescription(
        name: "explain",
        summary: "say whether a person may see a record, and by which policies",
        discussion: """
            Judges one record by the policies of a rules file, as a server does, and says which policy and
            which condition let it through, through which rows of other types, and since which revision the
            person's view shows or hides it. It changes nothing, and servers may run. It ends with 0 whatever
            the answer is.
            """,
        arguments: [
            Argument(name: "TYPE", help: "the record's type"),
            Argument(name: "ID", help: "the record's id"),
        ],
        options: viewerOptions + [
            Option(name: "rules", value: "FILE", help: "the rules file that servers have")
        ] + RecordSources.options,
        examples: [
            Example(
                "explain players 7 --user ann --rules rules.sql --data data --dataset club",
                "a file of a data folder"),
            Example(
                "explain players 7 --user ann --role coach --claim club=3 --rules rules.sql --postgres URL",
                "a database"),
        ]
    ) { arguments, console in
        let person = try viewer(arguments)
        guard let rules = arguments.value("rules") else {
            throw UsageError("explain needs --rules FILE, the server's.", command: "explain")
        }
        let explanation = try RecordSources.read(arguments) { source in
            try explain(arguments, person, rules, in: source)
        }
        if arguments.isJSON {
            console.print(json(explanation).description)
        } else {
            for line in explanation.sentences { console.print(line) }
        }
        return .done
    }

    /// The options that name a person.
    static let viewerOptions = [
        Option(name: "user", value: "NAME", help: "the user, as his token names him"),
        Option(name: "role", value: "ROLE", help: "a role of the user", repeats: true),
        Option(
            name: "claim", value: "NAME=VALUE", help: "a claim of the token, for policies",
            repeats: true),
    ]

    /// Returns the person that the options name.
    /// - Throws: `UsageError` if none do.
    static func viewer(_ arguments: ParsedArguments) throws -> Principal {
        let (user, roles) = (arguments.value("user"), arguments.values["role"] ?? [])
        guard user?.isEmpty == false || !roles.isEmpty else {
            throw UsageError(
                "\(arguments.command) needs --user NAME; a token without a user has --role ROLE.",
                command: arguments.command)
        }
        var claims: [String: String] = [:]
        for claim in arguments.values["claim"] ?? [] {
            let parts = claim.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw UsageError(
                    "--claim takes NAME=VALUE; “\(claim)” has no value.",
                    command: arguments.command)
            }
            claims[String(parts[0])] = String(parts[1])
        }
        return Principal(name: arguments.command, user: user, roles: roles, claims: claims)
    }

    private static func explain(
        _ arguments: ParsedArguments, _ person: Principal, _ rules: String,
        in source: any RecordSource
    ) throws -> RecordExplanation {
        let (name, text) = (arguments.positional[0], arguments.positional[1])
        let schema = source.schema
        guard let type = schema.index(of: name) else {
            let types = schema.types.map(\.name).joined(separator: ", ")
            throw CommandError(
                "The data set has no type “\(name)”. It has: \(types).", code: .usage)
        }
        var id = RecordID.text(text)
        if schema.types[type].keyKind == .integer {
            guard let number = Int64(text) else {
                throw CommandError(
                    "The ids of “\(name)” are whole numbers; “\(text)” is none.", code: .usage)
            }
            id = .integer(number)
        }
        let bytes = Array(try SchemaFiles.read(rules).utf8)
        guard let policies = try RulesFile.read(bytes, schema: schema).policies else {
            throw CommandError(
                "The rules file “\(rules)” has no policies, so everyone sees every record.")
        }
        return try RecordExplanation(
            of: id, type: type, for: person, by: policies,
            now: Int64((Date().timeIntervalSince1970 * 1_000).rounded()), in: source)
    }

    // MARK: - JSON

    private static func json(_ explanation: RecordExplanation) -> JSONText {
        .object([
            ("type", .text(explanation.type)), ("id", .text(explanation.id.description)),
            ("revision", .integer(explanation.revision)),
            ("exists", .boolean(explanation.judgement != nil)),
            ("shown", .boolean(explanation.judgement?.isShown ?? false)),
            (
                "policies",
                .list((explanation.judgement?.policies ?? []).map(json))
            ),
            ("view", json(explanation.listing)),
            ("explanation", .list(explanation.sentences.map { .text($0) })),
        ])
    }

    private static func json(_ policy: PolicyFinding) -> JSONText {
        .object([
            ("name", .text(policy.name)), ("line", .integer(Int64(policy.line))),
            ("permissive", .boolean(policy.isPermissive)),
            ("roles", .list(policy.roles.map { .text($0) })),
            ("outcome", .optional(policy.outcome.map(word))),
            (
                "conditions",
                .list(
                    policy.parts.map { part in
                        .object([
                            ("text", .text(part.text)), ("line", .integer(Int64(part.line))),
                            ("outcome", .text(word(part.outcome))),
                            (
                                "rows",
                                .list(
                                    part.rows.map {
                                        .object([
                                            ("type", .text($0.type)),
                                            ("id", .text($0.id.description)),
                                        ])
                                    })
                            ),
                        ])
                    })
            ),
        ])
    }

    private static func word(_ outcome: PolicyFinding.Outcome) -> String {
        switch outcome {
        case .holds: "holds"
        case .fails: "fails"
        case .unknown: "null"
        case .fault(let reason): "fault: \(reason)"
        }
    }

    private static func json(_ listing: RecordExplanation.Listing) -> JSONText {
        switch listing {
        case .whole: .text("whole")
        case .nothing: .text("nothing")
        case .uncomputed: .null
        case .listed(let view):
            .object([
                ("number", .integer(view.number)), ("computed", .integer(view.revision)),
                ("shown", view.member.map { .boolean($0.isShown) } ?? .null),
                ("since", .optional(view.member?.since)),
                ("given", .optional(view.given?.first)),
            ])
        }
    }
}
