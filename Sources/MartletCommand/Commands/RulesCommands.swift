import Foundation
import MartletModel
import MartletRules
import MartletServerCore

extension CommandDescription {
    static let rulesCheck = CommandDescription(
        name: "rules check",
        summary: "read a rules file of policies, and say what each policy reads",
        discussion: """
            The file is SQL: CREATE POLICY, GRANT, REVOKE and ALTER TABLE … ROW LEVEL SECURITY, as
            PostgreSQL has them. A fault is told with its line, its column and what to write. Of
            each policy the command says which rows of other types it looks up, and by which column, and what
            it asks about the person and the day. Of each type it says which people share a view, and after
            which changes a server judges all its rows again, and not the changed ones alone.

            With a data set it counts the rows that a person sees by the file (--user), or else those that the
            devices of each person were given last. It changes nothing, and servers may run.
            """,
        arguments: [
            Argument(name: "FILE", help: "the rules file"),
            Argument(name: "SCHEMA", help: "a file with the tables' CREATE statements"),
        ],
        options: viewerOptions + RecordSources.options,
        examples: [
            Example("rules check rules.sql schema.sql", "in continuous integration"),
            Example(
                "rules check rules.sql schema.sql --data data --dataset club --user ann",
                "what ann would see"),
        ]
    ) { arguments, console in
        let program = try read(arguments)
        let people = try people(arguments)
        if arguments.isJSON {
            console.print(json(program, people).description)
        } else {
            for line in lines(program) { console.print(line) }
            for line in people?.map(\.line) ?? [] { console.print(line) }
            if people?.isEmpty == true { console.note("No device was given a view yet.") }
        }
        return .done
    }

    /// The rows that somebody sees, by type.
    private struct Person {
        let name: String
        let counts: [(type: String, count: Int)]

        init(_ counts: RowCounts, _ schema: Schema, name: String? = nil) {
            let identity = counts.identity
            let given =
                identity.hasPrefix("user:")
                ? String(identity.dropFirst(5)) : "the token " + identity.dropFirst(6)
            self.name = name ?? given
            self.counts = Array(zip(schema.types.map(\.name), counts.counts))
        }

        var line: String {
            let list = counts.map { "\($0.count) of \($0.type)" }.joined(separator: ", ")
            return "\(name) sees \(list)"
        }

        var json: JSONText {
            .object([
                ("name", .text(name)),
                ("rows", .object(counts.map { ($0.type, .integer(Int64($0.count))) })),
            ])
        }
    }

    /// Returns the rows that people see in the data set that the options name; nil if they name none.
    private static func people(_ arguments: ParsedArguments) throws -> [Person]? {
        let isForPerson = ["user", "role", "claim"].contains { arguments.value($0) != nil }
        guard
            isForPerson
                || ["data", "dataset", "postgres"].contains(where: {
                    arguments.value($0) != nil
                })
        else { return nil }
        let person = isForPerson ? try viewer(arguments) : nil
        let path = arguments.positional[0]
        let text = try SchemaFiles.read(path)
        return try RecordSources.read(arguments) { source in
            let policies = try PolicyFiles.program(text, path, schema: source.schema)
            guard let person else {
                return try source.givenCounts().map { Person($0, source.schema) }
            }
            let now = Int64((Date().timeIntervalSince1970 * 1_000).rounded())
            return [
                Person(
                    try source.counts(for: person, by: policies, now: now), source.schema,
                    name: person.user ?? "a person without a user")
            ]
        }
    }

    private static func read(_ arguments: ParsedArguments) throws -> RulesProgram {
        try PolicyFiles(arguments).program
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
                + ["  view: " + view(of: index, program)]
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
        var reads = sources.isEmpty ? "the row alone" : sources.joined(separator: "; ")
        let asked = asked(program.inputs(of: policy))
        if !asked.isEmpty { reads += "; asks for \(asked.joined(separator: ", "))" }
        return "\(policy.name) (\(words.joined(separator: ", ")), line \(policy.line)): \(reads)"
    }

    private static func asked(_ inputs: ViewerInputs) -> [String] {
        (inputs.user ? ["the user"] : [])
            + inputs.roles.sorted().map { "the role \($0)" }
            + inputs.claims.sorted().map { "the claim \($0)" } + (inputs.day ? ["the day"] : [])
    }

    /// Returns which people share a view of a type, and what it costs to keep.
    private static func view(of type: Int, _ program: RulesProgram) -> String {
        let asked = asked(program.inputs(of: type))
        let shared =
            asked.isEmpty
            ? "everyone shares one"
            : "people share one if they have the same of these: \(asked.joined(separator: ", "))"
        return "\(shared); \(again(type, program, isShared: asked.isEmpty))"
    }

    /// Returns which rows of a type are judged again, and why there are no fewer.
    private static func again(_ type: Int, _ program: RulesProgram, isShared: Bool) -> String {
        let read = names(of: program.typesRead(by: type).subtracting([type]), program)
            .joined(separator: ", ")
        let finding = program.rowFinding(of: type)
        guard finding.judgingEach.isEmpty else {
            let policies = finding.judgingEach.joined(separator: ", ")
            if read.isEmpty {
                return isShared
                    ? "only changed rows are judged again"
                    : "each changed row is judged for each view, because \(policies) compares no column with values of the person"
            }
            return
                "all rows may be judged again after changes of \(read), because \(policies) compares no column with values of the person"
        }
        let found =
            finding.columns.isEmpty
            ? "only changed rows are judged again"
            : "rows are found by \(finding.columns.joined(separator: ", "))"
        guard !read.isEmpty else { return found }
        return finding.readByRow.isEmpty
            ? "\(found), and after changes of \(read) only those that come or go are judged again"
            : """
            \(found), and all that are found are judged again after changes of \
            \(finding.readByRow.joined(separator: ", ")), which queries read row by row
            """
    }

    private static func names(of types: Set<Int>, _ program: RulesProgram) -> [String] {
        types.sorted().map { program.schema.types[$0].name }
    }

    private static func json(_ inputs: ViewerInputs) -> JSONText {
        .object([
            ("user", .boolean(inputs.user)), ("day", .boolean(inputs.day)),
            ("roles", .list(inputs.roles.sorted().map { .text($0) })),
            ("claims", .list(inputs.claims.sorted().map { .text($0) })),
        ])
    }

    private static func json(_ program: RulesProgram, _ people: [Person]?) -> JSONText {
        let types = program.schema.types.enumerated().map { index, type in
            JSONText.object([
                ("type", .text(type.name)), ("secured", .boolean(program.isSecured[index])),
                ("policies", .list(program.policies[index].map { json($0, program) })),
                ("asks", json(program.inputs(of: index))),
                (
                    "judgedAgainAfter",
                    .list(names(of: program.typesRead(by: index), program).map { .text($0) })
                ),
            ])
        }
        let more = people.map { [("people", JSONText.list($0.map(\.json)))] } ?? []
        return .object([("types", .list(types))] + more)
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
            ("asks", json(program.inputs(of: policy))),
        ])
    }
}
