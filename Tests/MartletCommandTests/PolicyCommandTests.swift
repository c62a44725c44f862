import Foundation
import Martlet
import PostgresKit
import SQLiteKit
import Testing

@testable import MartletCommand

@Suite("Commands for policies", .serialized)
struct PolicyCommandTests {
    static let rules = """
        CREATE POLICY own ON teams FOR SELECT USING (city = martlet_user() OR city = 'all');
        CREATE POLICY own ON players FOR SELECT
            USING (EXISTS (SELECT 1 FROM teams WHERE teams.id = players.team_id));
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY office ON players TO office USING (true);
        """

    static func write(_ text: String, to path: String) throws {
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    static func token(
        _ user: String, _ more: String..., at location: [String]
    ) async throws -> String {
        let made = await ServedData.run(
            ["token", "create", "team", "--user", user] + more + location)
        #expect(made.code == .done, "\(made.err)")
        return made.out.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static func explain(
        _ words: [String], _ location: [String], code: ExitCode = .done
    ) async -> [String] {
        let result = await ServedData.run(["explain"] + words + location)
        #expect(result.code == code, "\(result.err)")
        return result.out.split(separator: "\n").map(String.init)
    }

    @Test(
        "explain: who sees a record, by which policy, through which rows and since when",
        arguments: [false, true])
    func explained(isDatabase: Bool) async throws {
        let served = try ServedData()
        var location = ["--data", served.data]
        if isDatabase {
            let url = try await ServedData.database()
            let schema = served.path("schema.sql")
            try Self.write(ServedData.postgresSchema, to: schema)
            let made = await ServedData.run([
                "postgres", "init", "--postgres", url, "--name", "team", "--schema", schema,
            ])
            #expect(made.code == .done, "\(made.err)")
            served.use(postgres: url)
            location = ["--postgres", url]
        }
        let office = try await Self.token("olga", "--role", "office", at: location)
        let ann = try await Self.token("ann", at: location)
        try await served.start(rules: Self.rules)
        let rules = served.path("rules.sql")
        try Self.write(Self.rules, to: rules)
        let options =
            ["--rules", rules] + location + (isDatabase ? [] : ["--dataset", "team"])
        let olga = try await served.device("olga", token: office)
        for city in ["ann", "all", "ben"] {
            try await olga.write { context in
                let team = try context.insert("teams", ["name": "T", "city": .text(city)])
                _ = try context.insert("players", ["name": "P", "team_id": team.sqlValue])
            }
        }
        try await olga.sync()
        let before = await Self.explain(["players", "1", "--user", "ann"], options)
        #expect(
            before == [
                "players 1 is shown to ann.",
                """
                - policy “own” (line 2) lets it through: EXISTS (SELECT 1 FROM teams WHERE teams.id = \
                players.team_id), through teams 1
                """, "No view with these rules, roles and claims was computed yet.",
            ])
        let device = try await served.device("ann", token: ann)
        try await device.sync()
        let first = await Self.explain(["players", "2", "--user", "ann"], options)
        #expect(first.contains("The view listed it when it was computed for the first time."))
        try await olga.write { context in
            try context.update("teams", .integer(3), ["city": "ann"])
            try context.update("teams", .integer(1), ["city": "ben"])
        }
        try await olga.sync()
        let behind = await Self.explain(["players", "3", "--user", "ann"], options)
        #expect(
            behind.contains { $0.hasPrefix("The view was computed up to revision") }, "\(behind)")
        try await device.sync()
        let entered = await Self.explain(["players", "3", "--user", "ann"], options)
        #expect(entered.contains("The view shows it since revision 4."), "\(entered)")
        #expect(entered.contains { $0.hasPrefix("Devices of ann were given this view from") })
        let left = await Self.explain(["players", "1", "--user", "ann"], options)
        #expect(
            left.prefix(3) == [
                "players 1 is hidden from ann.",
                """
                - policy “own” (line 2) does not let it through: EXISTS (SELECT 1 FROM teams WHERE \
                teams.id = players.team_id) does not hold
                """, "- policy “office” (line 5) is for office",
            ])
        #expect(left.contains("The view hides it since revision 4."), "\(left)")
        try await Self.others(options)
        try await Self.counts(served, location + (isDatabase ? [] : ["--dataset", "team"]))
        await olga.close()
        await device.close()
        await served.stop()
    }

    @Test("import: a record that the rules refuse is named, with how many records are saved")
    func refusedImport() async throws {
        let served = try ServedData()
        let ann = try await Self.token("ann", at: ["--data", served.data])
        try await served.start(
            rules: """
                CREATE POLICY own ON teams USING (city = martlet_user());
                CREATE POLICY own ON players USING (true);
                """)
        let device = try await served.device("ann", token: ann)
        try await device.sync()
        await device.close()
        let teams = (1...9).map { "\($0),T\($0),\($0 == 6 ? "ben" : "ann")\n" }
        try Self.write("id,name,city\n" + teams.joined(), to: served.path("teams.csv"))
        let words = [
            "import", served.path("ann.sqlite"), served.path("teams.csv"), "--set-size", "3",
            "--offline",
        ]
        let refused = await ServedData.run(words)
        #expect(refused.code == .failed)
        #expect(
            refused.err.contains(
                """
                teams.csv, line 7: The rules do not allow this: no policy lets you create a record of “teams” \
                like this. The change set was not saved. Leave the change out, or ask for the right to make \
                it. Of the file's 9 records, the first 3 are saved; change sets that are queued: 1. Correct \
                the file from line 5 on, and run the import again: it continues there.
                """), "\(refused.err)")
        try Self.write(
            "id,name,city\n" + teams.joined().replacing("ben", with: "ann"),
            to: served.path("teams.csv"))
        let corrected = await ServedData.run(words)
        #expect(corrected.code == .done, "\(corrected.err)")
        #expect(
            corrected.out.hasPrefix("6 records in 2 change sets (3 were there from before)."),
            "\(corrected.out)")
        await served.stop()
    }

    /// Other people, records and forms.
    private static func others(_ options: [String]) async throws {
        let stranger = await explain(["teams", "1", "--user", "cleo"], options)
        #expect(stranger.first == "teams 1 is hidden from cleo.")
        #expect(stranger.last == "No view with these rules, roles and claims was computed yet.")
        let office = await explain(["teams", "1", "--role", "office"], options)
        #expect(office.first == "teams 1 is shown to a person without a user.")
        #expect(office.last == "a person without a user sees all of teams, so no view lists it.")
        let gone = await explain(["teams", "77", "--user", "ann"], options)
        #expect(gone.first == "teams 77 is not there, or no device can be sent it.")
        for words in [["teams", "-1"], ["--user", "ann", "--", "teams", "-1"]] {
            let temporary = await explain(
                words[0] == "teams" ? words + ["--user", "ann"] + options : options + words, [])
            #expect(temporary.first == "teams -1 is not there, or no device can be sent it.")
        }
        let json = await explain(["teams", "2", "--user", "ann", "--json"], options)
        #expect(
            json.first?.hasPrefix(
                #"{"type":"teams","id":"2","revision":4,"exists":true,"shown":true,"policies":[{"name":"own""#
            ) == true, "\(json)")
        #expect(
            json.first?.contains(
                #"{"text":"city = 'all'","line":1,"outcome":"holds","rows":[]}"#) == true)
    }

    /// The rows that people see, by the file and by what their devices were given.
    private static func counts(_ served: ServedData, _ location: [String]) async throws {
        let schema = served.path("tables.sql")
        try write(ServedData.schema, to: schema)
        func check(_ words: String...) async -> String {
            let result = await ServedData.run(
                ["rules", "check", served.path("rules.sql"), schema] + location + words)
            #expect(result.code == .done, "\(result.err)")
            return result.out.split(separator: "\n").last.map(String.init) ?? ""
        }
        // The office sees everything, so it is given no view.
        #expect(await check() == "ann sees 2 of teams, 2 of players")
        #expect(await check("--user", "cleo") == "cleo sees 1 of teams, 1 of players")
        #expect(
            await check("--role", "office").hasPrefix("a person without a user sees 3 of teams, 3"))
        #expect(
            await check("--json").hasSuffix(
                #""people":[{"name":"ann","rows":{"teams":2,"players":2}}]}"#))
        try write("CREATE POLICY own ON teams USING (city = 'ben')", to: served.path("rules.sql"))
        #expect(await check("--user", "ann") == "ann sees 1 of teams, 0 of players")
        try write("CREATE TABLE other (id INTEGER PRIMARY KEY)", to: schema)
        try write("CREATE POLICY own ON other USING (true)", to: served.path("rules.sql"))
        let strange = await ServedData.run(
            ["rules", "check", served.path("rules.sql"), schema, "--user", "ann"] + location)
        #expect(strange.code == .failed)
        #expect(
            strange.err.contains("rules.sql, line 1, column 22: the data set has no type “other”"))
        let nothing = await ServedData.run(
            ["rules", "check", served.path("rules.sql"), schema, "--user", "ann"])
        #expect(nothing.code == .usage, "\(nothing.err)")
        #expect(nothing.err.contains("rules check needs --data DIR and --dataset NAME"))
    }

    @Test("explain: what is wrong in a command line, a file or a folder is said")
    func explainRefusals() async throws {
        let served = try ServedData()
        try await served.start()
        await served.stop()
        let rules = served.path("rules.sql")
        try Self.write(Self.rules, to: rules)
        try Self.write("CREATE POLICY own ON team USING (true)", to: served.path("fault.sql"))
        try Self.write("{}", to: served.path("rules.json"))
        try Self.write("no data set", to: served.path("data/text.sqlite"))
        let old = served.path("data/old.sqlite")
        try FileManager.default.copyItem(atPath: served.path("data/team.sqlite"), toPath: old)
        try Connection(path: old, mode: .readWrite).execute(
            "UPDATE martlet_meta SET value = 1 WHERE key = 'format'")
        try Connection(path: served.path("data/plain.sqlite")).execute("CREATE TABLE t (id)")
        func named(_ name: String) -> [String] {
            ["teams", "1", "--user", "ann", "--rules", rules, "--data", served.data]
                + ["--dataset", name]
        }
        let data = ["--data", served.data, "--dataset", "team"]
        let user = ["--user", "ann"]
        let cases: [(words: [String], code: ExitCode, sentence: String)] = [
            (["teams", "1", "--rules", rules] + data, .usage, "explain needs --user NAME"),
            (["teams", "1"] + user + data, .usage, "explain needs --rules FILE"),
            (["teams"] + user, .usage, "Missing ID"),
            (
                ["teams", "1", "--rules", rules] + user, .usage,
                "needs --data DIR and --dataset NAME"
            ),
            (
                ["teams", "1", "--rules", rules, "--data", served.data] + user, .usage,
                "--data DIR needs --dataset NAME"
            ),
            (
                ["teams", "1", "--rules", rules, "--claim", "club"] + user + data, .usage,
                "--claim takes NAME=VALUE"
            ),
            (
                ["team", "1", "--rules", rules] + user + data, .usage,
                "has no type “team”. It has: teams, players"
            ),
            (["teams", "x", "--rules", rules] + user + data, .usage, "“x” is none"),
            (
                ["teams", "1", "--rules", served.path("none")] + user + data, .failed,
                "none cannot be read"
            ),
            (
                ["teams", "1", "--rules", served.path("fault.sql")] + user + data, .failed,
                "line 1, column 22: the data set has no type “team”"
            ),
            (
                ["teams", "1", "--rules", served.path("rules.json")] + user + data, .failed,
                "has no policies, so everyone sees every record"
            ),
            (named("club"), .failed, "There is no data set club"),
            (named("text"), .failed, "It is no SQLite file"),
            (named("plain"), .failed, "is no data set's file; check --data and --dataset"),
            (named("old"), .failed, "the file has the format 1, and this version"),
            (
                ["teams", "1", "--rules", rules, "--postgres", "postgresql://127.0.0.1:1/x"] + user,
                .unreachable, "Check host and port"
            ),
        ]
        for (words, code, sentence) in cases {
            let result = await ServedData.run(["explain"] + words)
            #expect(result.code == code, "\(words): \(result.err)")
            #expect(result.err.contains(sentence), "\(words): \(result.err)")
            #expect(result.out.isEmpty)
        }
    }

    @Test("a damaged file is named, and a program gets the failure as JSON")
    func damaged() async throws {
        let served = try ServedData()
        let folder = served.path("broken")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        try Self.write("no data set", to: served.path("broken/bad.sqlite"))
        try Self.write(Self.rules, to: served.path("rules.sql"))
        let explained = await ServedData.run(
            ["explain", "teams", "1", "--user", "ann", "--rules", served.path("rules.sql")]
                + ["--data", folder, "--dataset", "bad", "--json"])
        #expect(explained.code == .failed)
        #expect(explained.out.hasPrefix(#"{"ok":false,"error":""#))
        #expect(explained.err.contains("bad.sqlite: The file cannot be used"))
        for (rules, words) in [("", "name of a file is empty"), (folder, "it is a folder")] {
            let odd = await ServedData.run(["rules", "check", rules, served.path("rules.sql")])
            #expect(odd.err.contains(rules.isEmpty ? "FILE is empty" : words), "\(odd.err)")
            let doctor = await ServedData.run(
                ["doctor", "--postgres", "postgresql://127.0.0.1:1/x", "--rules", rules])
            #expect(doctor.err.contains(words), "\(doctor.err)")
        }
        let purges = await ServedData.run(["purges", "--data", folder])
        #expect(purges.err.contains("The data set “bad” cannot be read"), "\(purges.err)")
    }

    @Test("rules check: a rules file and a schema in each other's place are told apart")
    func swapped() async throws {
        let served = try ServedData()
        let (rules, schema) = (served.path("rules.sql"), served.path("schema.sql"))
        try Self.write(Self.rules, to: rules)
        try Self.write(ServedData.schema, to: schema)
        let swapped = await ServedData.run(["rules", "check", schema, rules])
        #expect(swapped.err.contains("name the rules file first"), "\(swapped.err)")
        try Self.write("CREATE TABL teams (id)", to: schema)
        let wrong = await ServedData.run(["rules", "check", rules, schema])
        #expect(wrong.err.contains("schema.sql: "), "\(wrong.err)")
        #expect(await ServedData.run(["doctor", "--help"]).out.contains("with --postgres: the"))
    }

    @Test("rules check: a file without a policy is refused, and a byte order mark is passed over")
    func emptyFile() async throws {
        let served = try ServedData()
        let (rules, schema) = (served.path("rules.sql"), served.path("schema.sql"))
        try Self.write(ServedData.schema, to: schema)
        for empty in ["", "-- nothing yet", "GRANT ALL ON teams TO PUBLIC;"] {
            try Self.write(empty, to: rules)
            let result = await ServedData.run(["rules", "check", rules, schema])
            #expect(result.code == .failed)
            #expect(
                result.err.contains("rules.sql has no policy, so nobody would see anything")
                    && result.err.contains("Without a rules file everybody sees everything"),
                "\(result.err)")
        }
        try Self.write("\u{FEFF}" + Self.rules, to: rules)
        let marked = await ServedData.run(["rules", "check", rules, schema])
        #expect(marked.code == .done, "\(marked.err)")
    }

    @Test("rules check, doctor and serve: values that PostgreSQL compares otherwise are refused")
    func incomparable() async throws {
        let served = try ServedData()
        let url = try await ServedData.database()
        let connection = try PostgresConnection(PostgresAddress(url))
        defer { connection.close() }
        try connection.execute(
            """
            CREATE TABLE c (id bigserial PRIMARY KEY, k char(10), at timestamptz, b bytea, u uuid, f real,
                j jsonb, l text[], t time);
            INSERT INTO c (k, u) VALUES ('top', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
            """)
        let adopted = await ServedData.run([
            "postgres", "adopt", "--postgres", url, "--name", "team", "--tables", "c",
        ])
        #expect(adopted.code == .done, "\(adopted.err)")
        let (rules, schema) = (served.path("rules.sql"), served.path("schema.sql"))
        let script = await ServedData.run(["postgres", "schema", "--postgres", url])
        try Self.write(script.out, to: schema)
        func check(_ condition: String, _ words: String...) async throws -> (ExitCode, String) {
            try Self.write("CREATE POLICY p ON c USING (\(condition));", to: rules)
            let result = await ServedData.run(
                ["rules", "check", rules, schema, "--postgres", url] + words)
            return (result.code, result.out + result.err)
        }
        for (condition, type) in [
            ("k <> 'top'", "character(10)"), ("at > '2026-01-15'", "timestamp with time zone"),
            ("f > 0.1", "real"), ("j <> '{}'", "jsonb"), ("l <> '{}'", "text[]"),
            ("t > '10:30'", "time without time zone"),
        ] {
            for words in [[], ["--user", "ann"]] {
                try Self.write("CREATE POLICY p ON c USING (\(condition));", to: rules)
                let result = await ServedData.run(
                    ["rules", "check", rules, schema, "--postgres", url] + words)
                #expect(result.code == .failed)
                #expect(
                    result.err.contains(
                        "rules.sql, line 1, column 29: it compares or converts a value of the type "
                            + "\(type), which would not have the same meaning"), "\(result.err)")
            }
        }
        let doctor = await ServedData.run(["doctor", "--postgres", url, "--rules", rules])
        #expect(doctor.out.contains("of the type time without time zone"), "\(doctor.out)")
        #expect(try await check("b <> '\\x01'", "--user", "ann").1.contains("is no bytea"))
        let uuid = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
        #expect(try await check("u <> '\(uuid)'", "--user", "ann").1.contains("ann sees 0 of c"))
        #expect(try await check("u IN ('\(uuid)')", "--user", "ann").1.contains("ann sees 1 of c"))
        #expect(try await check("u IN ('x')").1.contains("column 35: the text “'x'” is no uuid"))
    }

    @Test("explain: a database without a data set is refused")
    func noDataSet() async throws {
        let served = try ServedData()
        let rules = served.path("rules.sql")
        try Self.write(Self.rules, to: rules)
        let empty = try await ServedData.database()
        let none = await ServedData.run([
            "explain", "teams", "1", "--rules", rules, "--postgres", empty, "--user", "ann",
        ])
        #expect(none.code == .failed && none.err.contains("has no data set"), "\(none.err)")
    }

    @Test("rules test: results in the Test Anything Protocol, and as JSON")
    func tests() async throws {
        let served = try ServedData()
        let files = ["rules.sql", "schema.sql", "tests.sql"].map(served.path)
        try Self.write(Self.rules, to: files[0])
        try Self.write(ServedData.schema, to: files[1])
        try Self.write(
            """
            INSERT INTO teams (id, name, city) VALUES (1, 'Owls', 'ann'), (2, 'Jays', 'ben');
            SET martlet.user = 'ann';
            EXPECT ROWS 1 IN teams;
            EXPECT ROWS 1 IN teams WHERE name <> '#';
            """, to: files[2])
        let good = await ServedData.run(["rules", "test"] + files)
        #expect(good.code == .done, "\(good.err)")
        #expect(
            good.out == """
                ok 1 - line 3: ann: EXPECT ROWS 1 IN teams
                ok 2 - line 4: ann: EXPECT ROWS 1 IN teams WHERE name <> '\\#'
                1..2

                """)
        #expect(good.err.isEmpty)
        try Self.write(
            """
            INSERT INTO teams (id, name, city) VALUES (1, 'Owls', 'ann');
            SET ROLE office;
            EXPECT NO ROWS IN teams;
            EXPECT ROWS 1 IN teams;
            """, to: files[2])
        let bad = await ServedData.run(["rules", "test"] + files)
        #expect(bad.code == .failed)
        #expect(
            bad.out == """
                not ok 1 - line 3: a person without a user (office): EXPECT NO ROWS IN teams
                  # sees 1 row: 1
                  # teams 1 is shown
                  #   policy “office” (line 4) lets it through: true
                ok 2 - line 4: a person without a user (office): EXPECT ROWS 1 IN teams
                1..2

                """)
        #expect(bad.err.contains("1 of 2 expectations are not met"))
        let json = await ServedData.run(["rules", "test", "--json"] + files)
        #expect(json.code == .failed)
        #expect(json.out.hasPrefix(#"{"ok":false,"expectations":[{"line":3,"#), "\(json.out)")
        // The faults of each file have an exit status of their own.
        for index in files.indices {
            let whole = try String(contentsOfFile: files[index], encoding: .utf8)
            try Self.write("CREATE nothing", to: files[index])
            let fault = await ServedData.run(["rules", "test"] + files)
            #expect(fault.code == .usage, "\(fault.err)")
            #expect(fault.err.contains(files[index]), "\(fault.err)")
            #expect(fault.out.isEmpty)
            try Self.write(whole, to: files[index])
            var missing = files
            missing[index] = served.path("none.sql")
            let lost = await ServedData.run(["rules", "test"] + missing)
            #expect(lost.code == .usage && lost.err.contains("none.sql cannot be read"), "\(lost)")
        }
        #expect(await ServedData.run(["rules", "test"] + files.prefix(2)).code == .usage)
    }

    @Test("rules check: what policies ask of a person, and who shares a view")
    func check() async throws {
        let served = try ServedData()
        let files = ["rules.sql", "schema.sql"].map(served.path)
        try Self.write(Self.rules, to: files[0])
        try Self.write(ServedData.schema, to: files[1])
        let said = await ServedData.run(["rules", "check"] + files)
        #expect(
            said.out == """
                teams:
                  own (SELECT, line 1): the row alone; asks for the user
                  office (ALL, to office, line 4): the row alone
                  view: people share one if they have the same of these: the user, the role office; \
                rows are found by city
                players:
                  own (SELECT, line 2): looks up teams by id
                  office (ALL, to office, line 5): the row alone
                  view: people share one if they have the same of these: the user, the role office; \
                rows are found by team_id, and after changes of teams only those that come or go \
                are judged again

                """)
        let json = await ServedData.run(["rules", "check", "--json"] + files)
        #expect(
            json.out.contains(
                #""asks":{"user":true,"day":false,"roles":["office"],"claims":[]},"judgedAgainAfter":["teams"]"#
            ), "\(json.out)")
    }
}
