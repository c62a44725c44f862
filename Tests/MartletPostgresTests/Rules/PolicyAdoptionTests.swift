import Foundation
import MartletModel
import MartletRules
import PostgresKit
import Testing

@testable import MartletPostgres

/// Tables with row-level security become a data set with a rules file.
@Suite("Adoption of row-level security")
struct PolicyAdoptionTests {
    private static let tables = """
        CREATE SCHEMA crm;
        CREATE TYPE crm.state AS ENUM ('open', 'closed');
        CREATE TABLE members (id bigserial PRIMARY KEY, person varchar(40), club bigint);
        CREATE TABLE crm.notes (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text,
            state crm.state, "Fee" numeric, deleted_at timestamptz, code char(4), day date);
        ALTER TABLE members ENABLE ROW LEVEL SECURITY;
        ALTER TABLE crm.notes ENABLE ROW LEVEL SECURITY;
        CREATE TABLE plain (id bigserial PRIMARY KEY, name text);
        GRANT USAGE ON SCHEMA crm TO PUBLIC;
        """

    /// A database with the tables and some more statements. `#` stands for a name that no other test
    /// has, for roles.
    private static func database(_ script: String) async throws -> TestDatabase {
        let database = try await TestDatabase.make()
        let sql = tables + script.replacing("#", with: database.name)
        try await database.connected { try $0.execute(sql) }
        return database
    }

    private static func request(_ rules: PostgresAdoption.Rules) -> PostgresAdoption.Request {
        var request = PostgresAdoption.Request(
            name: "club", tables: ["members", "crm.notes", "plain"])
        request.rules = rules
        return request
    }

    /// What adoption says when it refuses, after a check that nothing has changed.
    private static func refusal(
        _ database: TestDatabase, _ rules: PostgresAdoption.Rules = .ofDatabase
    ) async throws -> [String] {
        try await database.connected { connection in
            let before = try connection.tableDescriptions()
            let error = #expect(throws: AdoptionError.self) {
                try PostgresAdoption(on: connection, now: 1).adopt(Self.request(rules))
            }
            #expect(try connection.tableDescriptions() == before)
            #expect(try MartletTables.dataSet(on: connection) == nil)
            return error?.problems.map(\.description) ?? []
        }
    }

    private static let policies = """
        CREATE ROLE #_coach; CREATE ROLE #_head IN ROLE #_coach; CREATE ROLE "#_Fan" LOGIN;
        GRANT #_coach TO "#_Fan";
        CREATE POLICY self ON members FOR SELECT
            USING (person = current_setting('martlet.user', true));
        CREATE POLICY club ON crm.notes TO #_coach
            USING (EXISTS (SELECT FROM members m JOIN plain p ON p.id = m.club
                WHERE m.person = notes.owner AND p.name LIKE 'A%'))
            WITH CHECK (state IN ('open', 'closed') AND deleted_at IS NULL);
        CREATE POLICY mine ON crm.notes AS RESTRICTIVE FOR UPDATE
            USING (owner IN ('ann', current_setting('martlet.claim.name')) OR "Fee" > -1.5);
        CREATE POLICY unused ON plain USING (name ~ 'x');
        GRANT SELECT ON members, crm.notes, plain TO PUBLIC;
        GRANT INSERT, UPDATE (owner, "Fee", code), DELETE ON crm.notes TO #_coach;
        GRANT TRUNCATE ON members TO #_coach WITH GRANT OPTION;
        """

    @Test("the policies and privileges become a rules file, which reads as they do")
    func rulesFile() async throws {
        let database = try await Self.database(Self.policies)
        let name = database.name
        try await database.connected { connection in
            let adoption = PostgresAdoption(on: connection, now: 1)
            let planned = try adoption.plan(Self.request(.ofDatabase))
            var saved: String?
            let report = try adoption.adopt(Self.request(.ofDatabase)) { saved = $0 }
            #expect(saved == report.rules && planned.rules == saved)
            let text = try #require(saved)
            for part in [
                "\nGRANT SELECT ON members TO PUBLIC;\n",
                "CREATE POLICY self ON members FOR SELECT\n    USING (((person)::text = ",
                "ALTER TABLE plain DISABLE ROW LEVEL SECURITY;\n",
                "\nGRANT INSERT, UPDATE (\"Fee\", code, owner), DELETE ON notes TO \(name)_coach, \(name)_head",
                "CREATE POLICY club ON notes TO \(name)_coach, \(name)_head\n    USING ((EXISTS ( SELECT",
                "WITH CHECK (((state = ANY (ARRAY['open', 'closed'])) AND (deleted_at IS NULL)))",
                "CREATE POLICY mine ON notes AS RESTRICTIVE FOR UPDATE\n    USING (",
            ] {
                #expect(text.contains(part), "\(part)\n\(text)")
            }
            #expect(!text.contains("unused") && !text.contains("Fan"))
            #expect(report.notes.contains { $0.contains("\(name)_coach, \(name)_head: the token") })
            let schema = try PostgresSchema.read(connection)
            let program = try RulesProgram(text, schema: schema.schema)
            #expect(program.policies.map(\.count) == [1, 2, 0])
            #expect(program.isSecured == [true, true, false])
            // A table of a data set that gets a policy later is written again with the others.
            try connection.execute(
                "ALTER TABLE plain ENABLE ROW LEVEL SECURITY; DROP POLICY unused ON plain")
            var again = Self.request(.ofDatabase)
            again.tables = ["plain"]
            let second = try #require(try adoption.adopt(again).rules)
            #expect(
                second
                    == text.replacing("ALTER TABLE plain DISABLE ROW LEVEL SECURITY;\n", with: ""))
        }
    }

    @Test("a file that cannot be saved undoes the adoption")
    func unsaved() async throws {
        struct Full: Error {}
        let database = try await Self.database(Self.policies)
        try await database.connected { connection in
            #expect(throws: Full.self) {
                try PostgresAdoption(on: connection, now: 1)
                    .adopt(Self.request(.ofDatabase)) { _ in throw Full() }
            }
            let dataSet = try MartletTables.dataSet(on: connection)
            #expect(dataSet == nil)
        }
    }

    private static let foreign = """
        CREATE ROLE #_coach;
        CREATE FUNCTION lowered(text) RETURNS text LANGUAGE sql AS 'SELECT lower($1)';
        CREATE TABLE outside (id bigint, person text);
        CREATE SCHEMA auth;
        CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid';
        CREATE FUNCTION auth.jwt() RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
        CREATE POLICY "By Id" ON crm.notes USING (id = auth.uid());
        CREATE POLICY jwt ON crm.notes USING ((auth.jwt() ->> 'role') = owner);
        CREATE POLICY account ON members FOR DELETE USING (person = current_user);
        CREATE POLICY app ON members USING (club = current_setting('app.club')::bigint);
        CREATE POLICY far ON members USING (person IN (SELECT o.person FROM outside o));
        CREATE POLICY folded ON members FOR INSERT WITH CHECK (lowered(person) = 'x');
        CREATE POLICY late ON crm.notes USING (deleted_at > '2026-01-01');
        CREATE POLICY padded ON crm.notes USING (code = owner);
        CREATE POLICY shown ON crm.notes USING (deleted_at::text LIKE '2026%');
        CREATE POLICY daily ON crm.notes USING (deleted_at::date = day);
        CREATE POLICY ranked ON crm.notes USING (state < 'closed');
        CREATE POLICY sorted ON members USING (person COLLATE "C.utf8" < 'm');
        CREATE POLICY longest ON members USING (person = (SELECT p.name FROM plain p
            ORDER BY p.name COLLATE "C.utf8" LIMIT 1));
        ALTER TABLE crm.notes ADD COLUMN title text COLLATE "C.utf8";
        CREATE POLICY titled ON crm.notes USING (title BETWEEN 'a' AND 'm');
        CREATE POLICY fine2 ON crm.notes USING (title = 'm' OR title LIKE 'a%');
        CREATE POLICY fine ON members USING (person COLLATE "C" < 'm');
        GRANT SELECT (id, name) ON plain TO #_coach;
        """

    @Test("each policy that is not supported is named, with the reason and what to write")
    func unsupported() async throws {
        let database = try await Self.database(Self.foreign)
        let problems = try await Self.refusal(database)
        for (part, remedy) in [
            (
                "policy \"By Id\" of table “crm.notes” (USING, line 1, column 7, “auth.uid())”",
                "martlet_user()"
            ),
            (
                "policy jwt of table “crm.notes” (USING, line 1, column 14, ",
                "write martlet_claim('NAME')"
            ),
            (
                "policy account of table “public.members” (USING, line 1, column 19,",
                "martlet_user()"
            ),
            ("policy app of table “public.members” (USING, ", "expected 'martlet.user'"),
            ("policy far of table “public.members” reads “outside”, which devices", "adopt it too"),
            (
                "policy folded of table “public.members” (WITH CHECK, line 1, column 2,",
                "expected martlet_"
            ),
            (
                "policy late of table “crm.notes” (USING): it compares or converts a value of the type"
                    + " timestamp with time zone", "IS NULL"
            ),
            (
                "policy padded of table “crm.notes” (USING): it compares or converts a value of the type"
                    + " character", "IS NULL"
            ),
            ("policy shown of table “crm.notes” (USING): it compares or converts", "IS NULL"),
            ("policy daily of table “crm.notes” (USING): it compares or converts", "IS NULL"),
            ("policy ranked of table “crm.notes” (USING): it compares or converts", "IS NULL"),
            (
                "policy sorted of table “public.members” (USING): it depends on the order of texts in the"
                    + " collation “C.utf8”", "COLLATE \"C\""
            ),
            (
                "policy titled of table “crm.notes” (USING): it depends on the order of texts in the"
                    + " collation “C.utf8”", "COLLATE \"C\""
            ),
            (
                "policy longest of table “public.members” (USING): it depends on the order",
                "COLLATE"
            ),
            (
                "table “public.plain” grants SELECT on single columns to \(database.name)_coach",
                "whole"
            ),
            ("a rules file cannot be made of this row-level security", "by hand"),
        ] {
            #expect(
                problems.contains { $0.contains(part) && $0.contains(remedy) },
                "\(part)\n\(problems.joined(separator: "\n"))")
        }
        #expect(!problems.contains { $0.contains("policy fine") })
    }

    @Test("tables with row-level security need a rules file")
    func needed() async throws {
        let database = try await Self.database("CREATE POLICY p ON members USING (true)")
        let problems = try await Self.refusal(database, .none)
        #expect(problems.count == 2)
        #expect(problems.allSatisfy { $0.contains("adopt --rules FILE") })
    }

    @Test("policies that lead in a circle, or show nothing, make no rules file")
    func useless() async throws {
        let circle = try await Self.database(
            "CREATE POLICY p ON members USING (club IN (SELECT m.club FROM members m))")
        let problems = try await Self.refusal(circle)
        #expect(
            problems.first?.contains("read “members” again, without end") == true, "\(problems)")
        let nothing = try await Self.database("ALTER TABLE plain ENABLE ROW LEVEL SECURITY")
        #expect(try await Self.refusal(nothing).contains { $0.contains("no table has a policy") })
    }

    @Test("an operator's rules file is taken if it fits, whatever the policies are")
    func byHand() async throws {
        let database = try await Self.database("CREATE POLICY p ON members USING (person ~ 'x')")
        let wrong = try await Self.refusal(
            database, .file("CREATE POLICY p ON members USING (owner = martlet_user())"))
        #expect(wrong.count == 1)
        let words = "line 1, column 35: “members” has no column “owner”"
        #expect(wrong.first?.contains(words) == true, "\(wrong)")
        let empty = try await Self.refusal(database, .file("-- nothing"))
        #expect(empty.contains { $0.contains("nobody would see anything") })
        let one = "CREATE POLICY p ON notes USING (owner = martlet_user());"
        let lacking = try await Self.refusal(database, .file(one))
        #expect(
            lacking.map { $0.contains("has no policy for “") && $0.contains("DISABLE ROW") } == [
                true, true,
            ])
        let all =
            one + "ALTER TABLE members DISABLE ROW LEVEL SECURITY;"
            + "CREATE POLICY none ON plain USING (false)"
        try await database.connected { connection in
            let report = try PostgresAdoption(on: connection, now: 1).adopt(
                Self.request(.file(all)))
            #expect(report.rules == nil)
            #expect(try PostgresSchema.read(connection).rowSecured == ["members", "notes"])
        }
    }

    @Test("a role that does not bypass the policies can neither adopt, nor serve, nor be healthy")
    func restricted() async throws {
        let database = try await Self.database(
            """
            CREATE ROLE #_app LOGIN PASSWORD 'word';
            CREATE POLICY p ON members USING (person = current_setting('martlet.user', true));
            GRANT SELECT ON members, crm.notes, plain TO PUBLIC;
            ALTER TABLE members FORCE ROW LEVEL SECURITY;
            ALTER TABLE members OWNER TO #_app; ALTER TABLE crm.notes OWNER TO #_app;
            ALTER TABLE plain OWNER TO #_app; GRANT ALL ON SCHEMA crm, public TO #_app;
            """)
        let role = database.name + "_app"
        try await database.connected { connection in
            try connection.execute("GRANT CREATE ON DATABASE \(database.name) TO \(role)")
            let app = try PostgresConnection(
                connection.address.setting("user", role).setting("password", "word"))
            defer { app.close() }
            let words = "table “members” has row-level security, which the role “\(role)” does not"
            let error = #expect(throws: AdoptionError.self) {
                try PostgresAdoption(on: app, now: 1).plan(Self.request(.ofDatabase))
            }
            #expect(error?.problems.count == 1)
            #expect(error?.description.contains(words) == true)
            #expect(error?.description.contains("ALTER ROLE \"\(role)\" BYPASSRLS") == true)
            try connection.execute("ALTER ROLE \(role) BYPASSRLS")
            let report = try PostgresAdoption(on: app, now: 1).adopt(Self.request(.ofDatabase))
            // An owner who has to obey the policies may be a person's role, and others may not.
            #expect(report.rules?.contains("DELETE ON members TO \(role);") == true)
            #expect(report.rules?.contains("ON notes TO \(role);") == false)
            let state = try TableState.read(app)
            #expect(try PostgresSchema.read(app).rowSecured == ["members", "notes"])
            try connection.execute("ALTER ROLE \(role) NOBYPASSRLS")
            #expect(try TableState.read(app) != state)
            let opening = #expect(throws: AdoptionError.self) { try PostgresSchema.read(app) }
            #expect(opening?.description.contains(words) == true)
            let found = try PostgresDoctor(on: app, now: 0).findings()
            #expect(
                found.contains { $0.isError && $0.check == "tables" && $0.what.contains(words) })
            try connection.execute("ALTER TABLE members NO FORCE ROW LEVEL SECURITY")
            #expect(try PostgresSchema.read(app).rowSecured == ["members", "notes"])
        }
    }

    @Test("doctor warns of row-level security that no rules file replaces")
    func warning() async throws {
        let database = try await Self.database(Self.policies)
        try await database.connected { connection in
            let report = try PostgresAdoption(on: connection, now: 1)
                .adopt(Self.request(.ofDatabase))
            let text = try #require(report.rules)
            func found(_ policies: ((Schema) throws -> RulesProgram?)?) throws -> [String] {
                try PostgresDoctor(on: connection, now: 0, policies: policies).findings()
                    .filter { $0.check == "rules" }
                    .map { "\($0.isError) \($0.what) \($0.why)" }
            }
            let bare = try found(nil)
            #expect(bare.count == 2)
            #expect(bare.allSatisfy { $0.contains("false The row-level security of “") })
            let roles = try found { _ in nil }
            #expect(roles.count == 2)
            let fits = try found { try RulesProgram(text, schema: $0) }
            #expect(fits == [])
            let lacking = try found {
                try RulesProgram("CREATE POLICY p ON members USING (true)", schema: $0)
            }
            #expect(
                lacking.map { $0.hasPrefix("false The rules file has no policy for “") } == [
                    true, true,
                ])
            let wrong = try found {
                try RulesProgram("x", schema: $0)
            }
            #expect(wrong.map { $0.hasPrefix("true line 1, column 1") } == [true])
        }
    }
}
