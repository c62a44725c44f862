import Foundation
import MartletEmbedded
import MartletRules

extension CommandDescription {
    static let rulesTest = CommandDescription(
        name: "rules test",
        summary: "check what a team expects of its policies, on rows of its own",
        discussion: """
            The file of tests is SQL. INSERT, UPDATE and DELETE make rows, without regard to rights. SET names a
            person: SET martlet.user = 'ann', SET ROLE coach, SET martlet.claim.club = '3'; and the day, if
            policies ask for it: SET martlet.today = '2026-05-31'. The first SET after an expectation begins
            another person. These say what the person sees, and what he may do:

            EXPECT ROWS 1, 2 IN players;
            EXPECT 2 ROWS IN players WHERE team_id = 1;
            EXPECT NO ROWS IN teams;
            EXPECT UPDATE players SET name = 'Pia' WHERE id = 1 ALLOWED;
            EXPECT INSERT INTO players (id, team_id) VALUES (9, 1) REFUSED;
            EXPECT DELETE FROM players WHERE id = 1 REFUSED;

            An expectation changes nothing. The result is in the Test Anything Protocol. Ends with 1 if an
            expectation is not met, and with 2 if a file cannot be used.
            """,
        arguments: [
            Argument(name: "RULES", help: "the rules file"),
            Argument(name: "SCHEMA", help: "a file with the tables' CREATE statements"),
            Argument(name: "TESTS", help: "the file of tests"),
        ],
        examples: [
            Example(
                "rules test rules.sql schema.sql rules-test.sql", "in continuous integration")
        ]
    ) { arguments, console in
        let files = try PolicyFiles(arguments, code: .usage)
        let path = arguments.positional[2]
        let text = try SchemaFiles.read(path, code: .usage)
        let now = Int64((Date().timeIntervalSince1970 * 1_000).rounded())
        let results = try PolicyFiles.naming(path, .usage) {
            try PolicyTestRun(files.program, on: files.connection, now: now)
                .results(of: PolicyTestFile(text, schema: files.program.schema))
        }
        let failed = results.count { !$0.isMet }
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("ok", .boolean(failed == 0)), ("expectations", .list(results.map(json))),
                ]).description)
        } else {
            for (index, result) in results.enumerated() {
                for line in lines(result, index + 1) { console.print(line) }
            }
            console.print("1..\(results.count)")
        }
        if failed > 0 {
            console.note("\(path): \(failed) of \(results.count) expectations are not met.")
        }
        return failed == 0 ? .done : .failed
    }

    private static func lines(_ result: PolicyTestRun.Result, _ number: Int) -> [String] {
        let name = "line \(result.line): \(result.person): \(result.text)"
            .replacing("#", with: "\\#")
        return ["\(result.isMet ? "ok" : "not ok") \(number) - \(name)"]
            + result.details.map { "  # \($0)" }
    }

    private static func json(_ result: PolicyTestRun.Result) -> JSONText {
        .object([
            ("line", .integer(Int64(result.line))), ("person", .text(result.person)),
            ("expectation", .text(result.text)), ("ok", .boolean(result.isMet)),
            ("details", .list(result.details.map { .text($0) })),
        ])
    }
}
