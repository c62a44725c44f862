import MartletModel
import MartletRules
import Testing

@Suite("What a rules file must not say")
struct RulesFaultTests {
    static let schema = Schema(types: [
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "name", kind: .text), Attribute(name: "open", kind: .boolean),
                Attribute(name: "badge", kind: .blob), Attribute(name: "made", kind: .any),
                Attribute(name: "fee", kind: .numeric), Attribute(name: "share", kind: .real),
            ]),
        EntityType(
            name: "players", key: "code", keyKind: .text,
            attributes: [
                Attribute(name: "team_id", kind: .integer), Attribute(name: "name", kind: .text),
            ]),
        EntityType(
            name: "bills", key: "id", keyKind: .text,
            attributes: [
                Attribute(name: "due", kind: .any, meaning: .date),
                Attribute(name: "paid", kind: .text, meaning: .date),
                Attribute(name: "state", kind: .text, meaning: .enumeration(["open", "paid"])),
                Attribute(
                    name: "at", kind: .text,
                    meaning: .incomparable(words: "odd values", remedy: "use only IS NULL of it")),
            ], keyMeaning: .uuid(isCanonical: true)),
    ])

    static func fault(_ text: String) -> RulesFault? {
        do {
            _ = try RulesProgram(text, schema: schema)
            return nil
        } catch {
            return error
        }
    }

    /// A condition of a policy on teams, and words of the message.
    @Test(
        "is told with the line, the column and what to write",
        arguments: [
            ("nam = 'x'", 1, "“teams” has no column “nam”; expected one of “id”, “name”"),
            ("teem.name = 'x'", 1, "no source here has the name “teem”; expected one of “teams”"),
            ("id = 'x'", 6, "the text “'x'” is no integer"),
            ("id = name", 6, "a value of the type text does not compare with one of integer"),
            ("name", 1, "a condition is expected here, and this is of the type text"),
            ("open AND 3", 10, "this is of the type integer; compare it with something"),
            ("badge < badge", 9, "binary values have no order here; compare with = or <>"),
            ("badge <> '\\x01'", 10, "is no bytea; compare it with another column"),
            ("lower(name) = 'a'", 1, "the function “lower” is not supported"),
            ("now() > made", 1, "“now” is not supported; write martlet_today()"),
            ("current_user = name", 1, "write martlet_user()"),
            (
                "current_setting('app.user') = name", 17,
                "has no meaning here; expected 'martlet.user'"
            ),
            ("martlet_role(name)", 14, "takes a text in quotes"),
            ("martlet_user(1) = name", 1, "takes nothing in its brackets"),
            ("name ILIKE 'a%'", 6, "write LIKE"),
            ("name || 'x' = 'ax'", 6, "“||” is not supported"),
            ("name COLLATE \"de_DE\" = 'a'", 6, "texts are compared by their bytes"),
            ("name > ANY (SELECT name FROM players)", 8, "“> ANY” is not supported; write ="),
            ("name = ALL (ARRAY['a'])", 8, "“= ALL” is not supported"),
            ("name = ANY ('{a,b}'::text[])", 13, "expected ARRAY[…] or SELECT"),
            ("name ~~* 'a%'", 6, "“~~*” is not supported; letters are compared as they are"),
            ("name ~ '^a'", 6, "“~” is not supported; write LIKE"),
            ("auth.uid() = name", 1, "“auth.uid” is not supported; write martlet_user()"),
            ("auth.jwt() ->> 'role' = name", 12, "write martlet_claim('NAME') for a claim"),
            ("current_setting('request.jwt.claim.sub', true) = name", 17, "write martlet_user()"),
            (
                "current_setting('request.jwt.claim.club'::text) = name", 17,
                "write martlet_claim('club')"
            ),
            ("app.martlet_user() = name", 1, "the function “app.martlet_user” is not supported"),
            ("EXISTS (SELECT 1 FROM (players p JOIN teams t ON true) x)", 56, "stands here"),
            ("(id, name) = (1, 'a')", 4, "compare the values one by one"),
            ("CASE WHEN open THEN true END", 1, "“CASE” is not supported; write AND and OR"),
            ("id < 1 < 2", 8, "join two comparisons with AND"),
            ("open + 1 > 1", 1, "is not supported between boolean and integer"),
            ("share + 1 > 2", 1, "is not supported between double precision and integer"),
            ("made::timestamptz > '2026-01-01'", 7, "the type “timestamptz” is not supported"),
            (
                "made > '2026-01-01'::timestamp with time zone", 22,
                "the type “timestamp with time zone” is not supported"
            ),
            ("EXISTS (SELECT 1 FROM player)", 23, "the data set has no type “player”"),
            ("EXISTS (SELECT 1 FROM players p, players p)", 42, "two sources have the name “p”"),
            (
                "EXISTS (SELECT count(*) FROM players)", 16,
                "“count(*)” is not supported; write EXISTS"
            ),
            ("EXISTS (SELECT name FROM players GROUP BY name)", 34, "“GROUP BY” is not supported"),
            ("EXISTS (SELECT 1 FROM players LEFT JOIN teams ON true)", 31, "“LEFT JOIN”"),
            ("EXISTS (SELECT 1 FROM (SELECT 1) x)", 23, "a query in FROM is not supported"),
            ("id IN (SELECT 1, 2 FROM players)", 8, "this query must select one column"),
            ("id IN (SELECT team_id FROM players LIMIT 1)", 8, "write ORDER BY before LIMIT"),
            (
                "EXISTS (SELECT 1 FROM players a, players b WHERE name = 'x')", 50,
                "more than one source"
            ),
            ("name = 'x", 8, "a text does not end"),
            ("open /* x", 6, "a comment does not end"),
            ("open ? 1", 6, "the sign “?” is not supported"),
            ("E'x' = name", 1, "a text with the prefix “E” is not supported"),
            ("id = 1e400", 6, "the number “1e400” is not supported"),
            ("open = ", 9, "“)” stands here"),
        ])
    func conditions(condition: String, column: Int, words: String) throws {
        let before = "CREATE POLICY p ON teams\n  USING ("
        let fault = try #require(Self.fault(before + condition + " )"))
        #expect(fault.description.contains(words), "\(fault)")
        #expect(fault.line == 2)
        #expect(fault.column == 9 + column, "\(fault)")
    }

    @Test(
        "is told for statements as well",
        arguments: [
            ("SELECT 1", "line 1, column 1: this is no statement of a rules file"),
            ("CREATE TABLE x(id int)", "expected CREATE POLICY, GRANT, REVOKE"),
            ("CREATE POLICY p ON teem USING (true)", "column 20: the data set has no type “teem”"),
            ("CREATE POLICY p ON app.teams USING (true)", "the schema “app” is not supported"),
            ("CREATE POLICY p ON teams FOR INSERT USING (true)", "write WITH CHECK"),
            ("CREATE POLICY p ON teams FOR DELETE WITH CHECK (true)", "write USING"),
            ("CREATE POLICY p ON teams FOR READ USING (true)", "expected SELECT, INSERT"),
            ("CREATE POLICY p ON teams AS STRICT", "expected PERMISSIVE or RESTRICTIVE"),
            ("CREATE POLICY p ON teams TO current_user", "write a role's name or PUBLIC"),
            (
                "CREATE POLICY p ON teams;\nCREATE POLICY p ON teams",
                "line 2, column 15: “teams” has a policy “p” already, on line 1"
            ),
            ("CREATE POLICY p ON teams CREATE POLICY q ON teams", "expected “;”"),
            ("GRANT UPDATE (nam) ON teams TO coach", "“teams” has no column “nam”"),
            ("GRANT SELECT (name) ON teams TO coach", "SELECT cannot be limited to columns"),
            ("GRANT TRUNCATE ON teams TO coach", "“TRUNCATE” is not supported"),
            ("GRANT SELECT ON teams TO coach WITH GRANT OPTION", "is not supported"),
            ("GRANT admin TO coach", "expected SELECT, INSERT"),
            ("ALTER TABLE teams ADD COLUMN x int", "FORCE ROW LEVEL SECURITY"),
            (
                "CREATE POLICY p ON teams USING (id IN (SELECT id FROM teams))",
                "the policies of “teams” read “teams” again"
            ),
            (
                """
                CREATE POLICY p ON teams USING (EXISTS (SELECT FROM players WHERE team_id = id));
                CREATE POLICY q ON players USING (team_id IN (SELECT id FROM teams));
                """, "line 1, column 15: the policies of “teams” read “teams” again"
            ),
            (
                """
                CREATE POLICY p ON teams USING (true) WITH CHECK (id IN (SELECT team_id FROM players));
                CREATE POLICY q ON teams FOR INSERT WITH CHECK (id NOT IN (SELECT id FROM teams));
                """, "line 2, column 15: the policies of “teams” read “teams” again"
            ),
        ])
    func statements(text: String, words: String) throws {
        let fault = try #require(Self.fault(text))
        #expect(fault.description.contains(words), "\(fault)")
    }

    /// A condition of a policy on bills, the column of the fault, and words of the message.
    @Test(
        "a text in quotes has the form of what it is compared with, and some values are not compared",
        arguments: [
            ("due <> '2026-1-5'", 8, "the text “'2026-1-5'” is no date; write '2026-01-05'"),
            ("NOT (paid = '2026-1-5')", 13, "write '2026-01-05'"),
            ("'2026-1-5' < due", 1, "write '2026-01-05'"),
            ("due IN ('2026-01-05', '2026-1-6')", 23, "write '2026-01-06'"),
            ("due NOT IN ('2026-1-5')", 13, "write '2026-01-05'"),
            ("due = ANY (ARRAY['2026-1-5'])", 18, "write '2026-01-05'"),
            ("due BETWEEN '2026-01-05' AND 'May'", 30, "write '2026-01-31'"),
            ("'2026-1-5' BETWEEN '2026' AND due", 1, "write '2026-01-05'"),
            ("due IS DISTINCT FROM '2026-1-5'", 22, "write '2026-01-05'"),
            ("coalesce(due, '2026-1-5') = due", 15, "write '2026-01-05'"),
            ("coalesce('2026-1-5', due) = due", 10, "write '2026-01-05'"),
            ("nullif(due, '2026-1-5') IS NULL", 13, "write '2026-01-05'"),
            ("due - '2026-1-5' > 3", 7, "write '2026-01-05'"),
            ("due = '2026-01-05 10:00'", 7, "write '2026-01-05'"),
            ("due = '2026-1-5'::date", 7, "write '2026-01-05'"),
            ("due = ' 2026-01-05'", 7, "is no date"), ("due > 5", 7, "does not compare"),
            ("due LIKE '2026%'", 1, "write “::text” behind it"),
            ("id <> 'A0EE'", 7, "the text “'A0EE'” is no uuid; write 32 hexadecimal digits"),
            ("'A0EE' IN (id)", 1, "is no uuid"), ("id LIKE 'a%'", 1, "write “::text” behind it"),
            ("state <> 'Open'", 10, "is no enum; expected one of “open”, “paid”"),
            ("state < 'paid'", 1, "PostgreSQL orders the values of an enumeration"),
            ("at <> 'x'", 1, "odd values; use only IS NULL of it"),
            ("'x' = at", 7, "odd values"), ("at IN ('x')", 1, "odd values"),
            ("'x' IN (at)", 1, "odd values"), ("at BETWEEN 'a' AND 'b'", 1, "odd values"),
            ("at IS DISTINCT FROM NULL", 1, "odd values"), ("at::text = 'x'", 1, "odd values"),
            ("at LIKE 'x'", 1, "odd values"), ("coalesce(at, 'x') = 'x'", 1, "odd values"),
            ("nullif(at, 'x') IS NULL", 8, "odd values"), ("at - 1 > due", 1, "odd values"),
            ("id IN (SELECT at FROM bills)", 15, "odd values"),
            ("(SELECT at) = 'x'", 1, "odd values"),
            ("EXISTS (SELECT FROM teams ORDER BY at LIMIT 1)", 36, "odd values"),
        ])
    func forms(condition: String, column: Int, words: String) throws {
        let fault = try #require(Self.fault("CREATE POLICY p ON bills USING (\(condition))"))
        #expect(fault.description.contains(words), "\(fault)")
        #expect(fault.column == 32 + column, "\(fault)")
    }

    @Test(
        "a text in quotes in the form of what it is compared with is no fault",
        arguments: [
            "due = '2026-01-05' AND paid >= '2026-01-05'", "due < martlet_today() - 3",
            "due = martlet_claim('day')", "due::text LIKE '2026%'", "due - '2026-01-05' > 3",
            "id = '{A0EEBC999C0B4EF8BB6D6BB9BD380A11}' OR id::text = 'x'",
            "state IN ('open', 'paid') AND state::text < 'p'", "at IS NULL",
        ])
    func sound(condition: String) {
        #expect(Self.fault("CREATE POLICY p ON bills USING (\(condition))") == nil)
    }

    @Test("names are equal if their bytes are")
    func exactNames() {
        let (one, other) = ("caf\u{E9}", "cafe\u{301}")
        let schema = Schema(types: [
            EntityType(
                name: one, key: "id", keyKind: .integer,
                attributes: [Attribute(name: one, kind: .text)])
        ])
        for text in [
            "CREATE POLICY p ON \"\(other)\"",
            "CREATE POLICY p ON \"\(one)\" USING (\"\(other)\" = 'x')",
            "GRANT UPDATE (\"\(other)\") ON \"\(one)\" TO PUBLIC",
        ] {
            #expect(throws: RulesFault.self, "\(text)") { try RulesProgram(text, schema: schema) }
        }
    }

    /// Conditions as PostgreSQL shows those of its policies.
    @Test(
        "is not in what PostgreSQL makes of a supported condition",
        arguments: [
            "(name = current_setting('martlet.user'::text, true))",
            "((name)::text = NULLIF(current_setting('martlet.claim.club'::text), ''::text))",
            "martlet_role('coach'::text) AND (public.martlet_user() IS NOT NULL)",
            "(name = ANY (ARRAY['a'::text, 'b'::text]))", "(id <> ALL (ARRAY[1, 2]))",
            "((name)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))",
            "(id = ANY (ARRAY[]::integer[]))", "(id = ANY ( SELECT players.team_id FROM players))",
            "(name ~~ 'a%'::text)", "(name !~~ like_escape('a!%'::text, '!'::text))",
            "((name COLLATE \"C\") < 'm'::text)", "(id = '-2'::integer)", "(fee = '-1.5'::numeric)",
            "(NOT (EXISTS ( SELECT 1\n   FROM (players p\n     JOIN teams t ON ((t.id = p.team_id)))"
                + "\n  WHERE (p.team_id = teams.id))))",
            "(EXISTS ( SELECT FROM ((players p CROSS JOIN teams t) JOIN players q ON (true))))",
            "(id = ( SELECT t.team_id FROM players t ORDER BY t.code DESC NULLS LAST LIMIT 1))",
            "(name = ( SELECT martlet_user() AS martlet_user))",
        ])
    func deparsed(condition: String) {
        // A policy FOR INSERT may read its own type.
        #expect(
            Self.fault("CREATE POLICY p ON teams FOR INSERT WITH CHECK (\(condition))") == nil)
    }

    @Test("a cast of a text to an enumeration is dropped, and no other one")
    func enumerations() throws {
        let plain = try RulesProgram.droppingCasts(
            of: #"(a = 'x'::kind) AND b = '’::kind'::app."Kind" AND (c)::kind = 'y'::kinds"#,
            to: ["kind", #"app."Kind""#])
        #expect(plain == "(a = 'x') AND b = '’::kind' AND (c)::kind = 'y'::kinds")
    }

    @Test("a policy reads its own type if the type's SELECT policies read nothing")
    func ownType() {
        let first = """
            CREATE POLICY first ON teams FOR INSERT
              WITH CHECK (NOT EXISTS (SELECT FROM teams t WHERE t.name = teams.name));
            """
        #expect(
            Self.fault(first + "CREATE POLICY all_of_them ON teams FOR SELECT USING (open);") == nil
        )
        let reading = """
            CREATE POLICY of_players ON teams FOR SELECT
              USING (EXISTS (SELECT FROM players WHERE team_id = id));
            """
        #expect(Self.fault(reading) == nil)
        let fault = Self.fault(first + reading)
        #expect(
            fault?.description.contains("line 1, column 15: the policies of “teams” read") == true)
        #expect(Self.fault(first + reading + "ALTER TABLE teams DISABLE ROW LEVEL SECURITY") == nil)
    }

    @Test("no depth of nesting and no length of a chain exhausts the stack")
    func giants() throws {
        let many = 20_000
        for condition in [
            String(repeating: "(", count: many), String(repeating: "- ", count: many) + "1 = 1",
            String(repeating: "+", count: many) + "1 = 1",
            "open" + String(repeating: " IS TRUE", count: many),
            "1" + String(repeating: " + 1", count: many) + " = 1",
            "1" + String(repeating: "::int", count: many) + " = 1",
            String(repeating: "EXISTS (SELECT 1 WHERE ", count: many),
            String(repeating: "coalesce(", count: many),
        ] {
            #expect(Self.fault("CREATE POLICY p ON teams USING (\(condition))") != nil)
        }
        for condition in [
            "open" + String(repeating: " AND open", count: many),
            "open" + String(repeating: " OR open", count: many),
            String(repeating: "NOT ", count: many) + "open",
            "id IN (1" + String(repeating: ", 1", count: many) + ")",
        ] {
            #expect(Self.fault("CREATE POLICY p ON teams USING (\(condition))") == nil)
        }
    }

    @Test("the work of reading nested conditions stays in proportion to their text")
    func nesting() {
        for (before, after) in [
            ("(", " BETWEEN false AND true)"), ("(", " IN (true, false, NULL))"),
            ("nullif(", ", false)"), ("coalesce(", ", false)"), ("(", " IS DISTINCT FROM false)"),
        ] {
            let depth = 50
            let condition =
                String(repeating: before, count: depth) + "open"
                + String(repeating: after, count: depth)
            #expect(Self.fault("CREATE POLICY p ON teams USING (\(condition))") == nil)
        }
        let list = (1...200).map(String.init).joined(separator: ", ")
        let query = "(SELECT team_id FROM players ORDER BY code LIMIT 1) IN (\(list))"
        #expect(Self.fault("CREATE POLICY p ON teams USING (\(query))") == nil)
    }

    @Test("a cut or changed file is refused with a sentence, or read; never worse")
    func cuts() {
        let text = """
            CREATE POLICY "own""s" ON public.teams AS RESTRICTIVE FOR ALL TO coach, PUBLIC
              USING (name LIKE 'a!%' ESCAPE '!' AND (made - 3 <= martlet_today() -- the day
                OR EXISTS (SELECT 1 FROM players p JOIN teams t ON t.id = p.team_id
                  WHERE p.code IN (SELECT code FROM players ORDER BY name DESC NULLS LAST LIMIT 2))))
              WITH CHECK (id::text = coalesce(martlet_claim('club'), nullif(name, '')) /* x */);
            REVOKE INSERT (name, open), DELETE ON TABLE teams FROM coach;
            """
        let scalars = Array(text.unicodeScalars)
        for end in scalars.indices {
            _ = Self.fault(String(String.UnicodeScalarView(scalars[..<end])))
            for sign in ["'", "(", ")", "\u{301}", ";", "\"", "é"] as [Unicode.Scalar] {
                var changed = scalars
                changed[end] = sign
                _ = Self.fault(String(String.UnicodeScalarView(changed)))
            }
        }
        #expect(Self.fault(text)?.description.contains("read “teams” again") == true)
    }
}
