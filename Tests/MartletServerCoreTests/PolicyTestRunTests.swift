import MartletEmbedded
import MartletModel
import MartletRules
import SQLiteKit
import SQLiteRecords
import Testing

@Suite("Tests of policies")
struct PolicyTestRunTests {
    private static let tables = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL, open BOOLEAN);
        CREATE TABLE members (id INTEGER PRIMARY KEY, person TEXT, team_id INTEGER REFERENCES teams
            ON DELETE CASCADE);
        CREATE TABLE players (code TEXT PRIMARY KEY NOT NULL, team_id INTEGER REFERENCES teams,
            name TEXT, born TEXT);
        """

    private static let rules = """
        CREATE POLICY own ON teams USING (id IN (SELECT team_id FROM members WHERE person = martlet_user()));
        CREATE POLICY club ON teams FOR SELECT USING (name = martlet_claim('club'));
        CREATE POLICY self ON members USING (person = martlet_user());
        CREATE POLICY own ON players FOR SELECT
            USING (EXISTS (SELECT 1 FROM teams WHERE teams.id = players.team_id));
        CREATE POLICY adult ON players AS RESTRICTIVE FOR SELECT USING (born < martlet_today() - 6570);
        CREATE POLICY coaches ON players TO coach USING (true) WITH CHECK (name <> 'Nobody');
        GRANT SELECT ON players TO PUBLIC;
        GRANT INSERT, DELETE, UPDATE (name) ON players TO coach;
        """

    private static let fixtures = """
        INSERT INTO teams VALUES (1, 'Owls', TRUE), (2, 'Jays', FALSE), (3, 'Kites', TRUE);
        INSERT INTO members (id, person, team_id) VALUES (1, 'ann', 1);
        INSERT INTO players VALUES ('p', 1, 'Pia', '2000-01-01'), ('b', 2, 'Ben', '2000-01-01'),
            ('k', 1, 'Kid', '2020-01-01');
        SET martlet.today = '2026-05-31';
        SET martlet.user = 'ann';

        """

    private static func run(
        _ tests: String, after fixtures: String = fixtures
    ) throws -> [PolicyTestRun.Result] {
        let connection = try Connection(path: ":memory:")
        let schema = try SchemaMigration.apply(script: tables, to: connection)
        let file = try PolicyTestFile(fixtures + tests, schema: schema)
        return try PolicyTestRun(
            try RulesProgram(rules, schema: schema), on: connection, now: 0
        ).results(of: file)
    }

    @Test("expectations that are met, each for its person, leave the rows as they are")
    func met() throws {
        let results = try Self.run(
            """
            EXPECT ROWS 1 IN teams;
            EXPECT 1 ROW IN teams WHERE name = 'Owls' -- and no other
            ;
            EXPECT NO ROWS IN teams WHERE open IS FALSE;
            EXPECT ROWS 'p' IN players;
            EXPECT UPDATE teams SET name = 'Hawks', open = (1 = 1) WHERE id = 1 ALLOWED;
            EXPECT UPDATE teams SET name = 'x' WHERE id = 2 REFUSED;
            EXPECT INSERT INTO teams (id, name) VALUES (4, 'New') REFUSED;
            EXPECT UPDATE players SET name = 'x' WHERE code = 'p' REFUSED;
            EXPECT DELETE FROM teams WHERE id = 3 REFUSED;
            EXPECT INSERT INTO members (person, team_id) VALUES ('ann', 2) ALLOWED;
            EXPECT INSERT INTO members (person, team_id) VALUES ('ann', 2), ('ben', 2) REFUSED;

            SET ROLE coach, other;
            SET martlet.claim.club TO 'Jays';
            SET martlet.today = '2026-05-31';
            EXPECT NO ROWS IN members;
            EXPECT ROWS 2 IN teams;
            EXPECT 2 ROWS IN players;
            EXPECT UPDATE players SET name = 'x' WHERE code = 'p' ALLOWED;
            EXPECT UPDATE players SET name = 'x' WHERE code = 'k' REFUSED;
            EXPECT UPDATE players SET name = 'Nobody' WHERE code = 'p' REFUSED;
            EXPECT UPDATE players SET name = 'x', born = '2001-01-01' WHERE code = 'p' REFUSED;
            EXPECT INSERT INTO players (code, name) VALUES ('n', 'Nan') ALLOWED;
            EXPECT INSERT INTO players (code, name) VALUES ('n', 'Nobody') REFUSED;
            EXPECT DELETE FROM players WHERE code = 'b' ALLOWED;
            EXPECT DELETE FROM players WHERE code IN ('b', 'k') REFUSED;
            INSERT INTO members (id, person, team_id) VALUES (2, 'ben', 2);

            SET martlet.user = 'ben';
            EXPECT ROWS 2 IN teams;
            EXPECT ROWS 2 IN members;
            """)
        for result in results { #expect(result.isMet, "\(result)") }
        #expect(results.count == 24)
        #expect(results[0].line == 7)
        #expect(results[0].text == "EXPECT ROWS 1 IN teams")
        #expect(results[0].person == "ann")
        #expect(results[11].person == "a person without a user (coach, other, club = Jays)")
    }

    @Test(
        "an expectation that is not met says what is, and which policy decided",
        arguments: [
            (
                "EXPECT ROWS 1, 2, 7 IN teams",
                [
                    "sees 1 row: 1", "teams 2 is hidden",
                    """
                      policy “own” (line 1) does not let it through: id IN (SELECT team_id FROM members \
                    WHERE person = martlet_user()) does not hold
                    """,
                    "  policy “club” (line 2) does not let it through: name = martlet_claim('club') is NULL",
                    "teams 7 is not among the rows",
                ]
            ),
            (
                "EXPECT NO ROWS IN teams",
                [
                    "sees 1 row: 1", "teams 1 is shown",
                    """
                      policy “own” (line 1) lets it through: id IN (SELECT team_id FROM members \
                    WHERE person = martlet_user()), through members 1
                    """,
                ]
            ),
            (
                "EXPECT ROWS 'k' IN players WHERE code = 'k'",
                [
                    "sees no rows", "players k is hidden",
                    """
                      restrictive policy “adult” (line 6) does not let it through: born < \
                    martlet_today() - 6570 does not hold
                    """,
                ]
            ),
            (
                "EXPECT UPDATE teams SET name = 'x' WHERE id = 1 REFUSED",
                [
                    "is allowed", "teams 1 before it",
                    """
                      policy “own” (line 1) lets it through: id IN (SELECT team_id FROM members \
                    WHERE person = martlet_user()), through members 1
                    """, "teams 1 after it",
                    """
                      policy “own” (line 1) lets it through: id IN (SELECT team_id FROM members \
                    WHERE person = martlet_user()), through members 1
                    """,
                ]
            ),
            (
                "EXPECT INSERT INTO members (id, person) VALUES (9, 'ben') ALLOWED",
                [
                    "is refused: no policy lets you create a record of “members” like this",
                    "members 9",
                    """
                      policy “self” (line 3) does not let it through: person = martlet_user() does not hold
                    """,
                ]
            ),
            (
                "EXPECT DELETE FROM players WHERE code = 'p' ALLOWED",
                [
                    "is refused: you may not delete records of “players”", "players p",
                    "  policy “coaches” (line 7) is for coach",
                ]
            ),
            (
                "EXPECT UPDATE teams SET name = 'x' WHERE id = 8 REFUSED",
                ["no row of teams is changed by it"]
            ),
        ])
    func notMet(test: String, details: [String]) throws {
        let result = try #require(try Self.run(test).first)
        #expect(!result.isMet)
        #expect(result.details == details)
    }

    @Test("rights are judged before references, and a reference that refuses is the reason")
    func references() throws {
        let results = try Self.run(
            """
            EXPECT DELETE FROM teams WHERE id = 2 REFUSED;
            EXPECT INSERT INTO players (code, team_id) VALUES ('n', 77) REFUSED;
            EXPECT INSERT INTO members (id, person, team_id) VALUES (9, 'ben', 77) ALLOWED;
            EXPECT INSERT INTO members (id, person, team_id) VALUES (9, 'ann', 77) REFUSED;
            EXPECT INSERT INTO members (id, person, team_id) VALUES (9, 'ann', 77) ALLOWED;
            EXPECT DELETE FROM teams WHERE id = 1 ALLOWED;
            EXPECT INSERT INTO teams (id) VALUES (5) REFUSED;
            EXPECT INSERT INTO members (id, person) VALUES (1, 'ann') ALLOWED;
            EXPECT ROWS 1 IN teams;
            """)
        #expect(
            results.map(\.isMet) == [true, true, false, true, false, false, true, false, true],
            "\(results)")
        #expect(results[2].details.first?.contains("no policy lets you create") == true)
        let words = "a record of “members” would refer to one of “teams” that does not exist"
        #expect(results[4].details == ["is refused: the policies allow it, and \(words)"])
        #expect(results[5].details.first?.contains("a record of “players” would refer") == true)
        #expect(results[7].details == ["is refused: UNIQUE constraint failed: members.id"])
    }

    @Test("an expectation asks for the privilege of each column that an INSERT writes")
    func insertedColumns() throws {
        let connection = try Connection(path: ":memory:")
        let schema = try SchemaMigration.apply(
            script: "CREATE TABLE m (id INTEGER PRIMARY KEY, person TEXT, team INTEGER DEFAULT 3);",
            to: connection)
        let program = try RulesProgram(
            """
            CREATE POLICY a ON m USING (true); GRANT SELECT, INSERT (team) ON m TO PUBLIC;
            """, schema: schema)
        let file = try PolicyTestFile(
            """
            EXPECT INSERT INTO m (id, person) VALUES (9, 'ann') REFUSED;
            EXPECT INSERT INTO m (id, person, team) VALUES (9, 'ann', 1) REFUSED;
            EXPECT INSERT INTO m (id, team) VALUES (9, 1), (10, 2) ALLOWED;
            EXPECT INSERT INTO m (id, team, person) VALUES (9, 1, NULL), (10, 2, 'x') REFUSED;
            EXPECT INSERT INTO m (id, person) VALUES (9, NULL) ALLOWED;
            """, schema: schema)
        let results = try PolicyTestRun(program, on: connection, now: 0).results(of: file)
        #expect(results.map(\.isMet) == [true, true, true, true, true], "\(results)")
    }

    @Test("a condition does not find the new row itself: nobody gives himself a right by it")
    func ownRow() throws {
        let connection = try Connection(path: ":memory:")
        let schema = try SchemaMigration.apply(script: Self.tables, to: connection)
        let program = try RulesProgram(
            """
            CREATE POLICY add ON members FOR INSERT WITH CHECK (EXISTS (
                SELECT 1 FROM teams WHERE teams.id = members.team_id));
            CREATE POLICY see ON teams FOR SELECT
                USING (id IN (SELECT team_id FROM members WHERE person = martlet_user()));
            CREATE POLICY see ON members FOR SELECT USING (true);
            """, schema: schema)
        let file = try PolicyTestFile(
            """
            INSERT INTO teams (id, name) VALUES (1, 'Owls');
            SET martlet.user = 'ann';
            EXPECT INSERT INTO members (person, team_id) VALUES ('ann', 1) REFUSED;
            """, schema: schema)
        let results = try PolicyTestRun(program, on: connection, now: 0).results(of: file)
        #expect(results.map(\.isMet) == [true])
    }

    /// A file, the position of its fault, and words of the message.
    @Test(
        "a file that cannot be used is refused, with the line, the column and what to write",
        arguments: [
            ("", 7, 1, "the file expects nothing; write EXPECT ROWS"),
            (
                "SELECT 1;", 7, 1,
                "“select” stands here; expected INSERT, UPDATE, DELETE, SET or EXPECT"
            ),
            ("SET search_path = 'x'", 7, 5, "expected ROLE, martlet.user, martlet.claim.NAME"),
            ("SET martlet.club = 'x'", 7, 5, "expected ROLE, martlet.user, martlet.claim.NAME"),
            ("SET martlet.user = ann", 7, 20, "“ann” stands here; expected a text in quotes"),
            ("SET martlet.today = 'May'", 7, 26, "“May” is no day; write '2026-05-31'"),
            ("EXPECT 2 IN teams", 7, 10, "expected ROWS"),
            (
                "EXPECT MANY ROWS IN teams", 7, 8,
                "expected a number, NO, ROWS, INSERT, UPDATE or DELETE"
            ),
            (
                "EXPECT ROWS 1 IN teem", 7, 18,
                "the data set has no type “teem”; expected one of “teams”"
            ),
            (
                "EXPECT ROWS 1 IN players", 7, 18,
                "“1” is no id of “players”; write a text in quotes"
            ),
            ("EXPECT ROWS 'a' IN teams", 7, 20, "“a” is no id of “teams”; write a number"),
            ("EXPECT ROWS 1 IN teams WHERE", 7, 29, "expected a condition"),
            (
                "EXPECT ROWS 1 IN teams WHERE nam = 1", 7, 1,
                "SQLite refuses this statement: no such column: nam"
            ),
            ("EXPECT ROWS 1 IN teams 2", 7, 24, "expected “;”"),
            (
                "EXPECT UPDATE teams SET nam = 1 REFUSED", 7, 25,
                "“teams” has no column “nam”; expected one of"
            ),
            ("EXPECT UPDATE teams SET id = 1 REFUSED", 7, 25, "an id never changes"),
            (
                "EXPECT UPDATE teams SET name = 'x'", 7, 35,
                "the end of the file stands here; expected ALLOWED"
            ),
            (
                "EXPECT INSERT INTO teams VALUES (1) REFUSED", 7, 26,
                "expected the columns in brackets"
            ),
            (
                "EXPECT INSERT INTO teams (id) VALUES (5) ON CONFLICT DO NOTHING REFUSED", 7, 45,
                "“CONFLICT” is not supported in an expectation; leave it out"
            ),
            ("INSERT INTO teams VALUES (1, 'x', 0)", 7, 1, "UNIQUE constraint failed"),
            (
                "EXPECT DELETE FROM players WHERE code = 'p' ALLOWED; DELETE FROM teems", 7, 54,
                "no such table"
            ),
        ] as [(String, Int, Int, String)])
    func faults(test: String, line: Int, column: Int, words: String) throws {
        let fault = try #require(throws: RulesFault.self) {
            _ = try Self.run(
                test.hasPrefix("EXPECT") || test.isEmpty ? test : test + "; EXPECT NO ROWS IN teams"
            )
        }
        #expect(fault.line == line && fault.column == column, "\(fault)")
        #expect(fault.description.contains(words), "\(fault)")
    }

    @Test("a row that no device can be sent is a fault of the file")
    func unsendable() throws {
        let fault = try #require(throws: RulesFault.self) {
            _ = try Self.run(
                "UPDATE teams SET name = CAST (x.b AS BLOB) FROM (SELECT 'q' AS b) AS x;"
                    + "EXPECT NO ROWS IN teams")
        }
        #expect(fault.description.contains("has a value that no device can be sent"), "\(fault)")
    }
}
