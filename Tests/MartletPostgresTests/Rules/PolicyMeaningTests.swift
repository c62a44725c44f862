import Foundation
import MartletRules
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres

/// Adoption refuses what a rules file would not mean exactly as PostgreSQL does.
@Suite("The meaning of adopted policies")
struct PolicyMeaningTests {
    private static let tables = """
        CREATE TABLE things (id bigserial PRIMARY KEY, small integer, share double precision, fee numeric,
            name text, owner uuid);
        ALTER TABLE things ENABLE ROW LEVEL SECURITY;
        GRANT SELECT ON things TO PUBLIC;
        """

    /// Plans an adoption of the tables. `#` in the script stands for a name that no other test has, for
    /// roles.
    private static func plan(
        _ script: String, tables names: [String] = ["things"], isPlain: Bool = true
    ) async throws -> (report: PostgresAdoption.Report?, problems: [String]) {
        let database = try await TestDatabase.make()
        let sql = (isPlain ? tables : "") + script.replacing("#", with: database.name)
        return try await database.connected { connection in
            try connection.execute(sql)
            var request = PostgresAdoption.Request(name: "club", tables: names)
            request.rules = .ofDatabase
            do {
                return (try PostgresAdoption(on: connection, now: 1).plan(request), [])
            } catch let error as AdoptionError {
                return (nil, error.problems.map(\.description))
            }
        }
    }

    @Test(
        "a policy that would mean something else is named, with what to write",
        arguments: [
            ("small + 1 > 2", "computes a value of the type integer", "write ::bigint"),
            ("-small > 2", "computes a value of the type integer", "write ::bigint"),
            ("small / 2 > 2", "computes a value of the type integer", "write ::bigint"),
            ("fee::text = '1'", "the type numeric becomes no text here", "compare it as it is"),
            ("share::text = '1'", "the type double precision becomes no text", "compare it"),
            ("share::numeric > 1", "the type double precision becomes no numeric", "compare it"),
            ("share::real > 1", "the type “real” is not supported", "double precision"),
            (
                "name = martlet_user()", "calls the function “public.martlet_user”",
                "docs/policies-guide.md"
            ),
            ("name = current_setting('martlet.user', small > 1)", "true or false", "otherwise"),
            ("name > current_date::text", "policies-guide.md has these functions", "today()"),
        ])
    func refused(condition: String, words: String, remedy: String) async throws {
        let problems = try await Self.plan(
            """
            CREATE FUNCTION martlet_user() RETURNS text LANGUAGE sql AS 'SELECT ''ann''::text';
            CREATE POLICY odd ON things USING (\(condition));
            """
        ).problems
        #expect(
            problems.contains {
                $0.contains("policy odd of table “things” (USING") && $0.contains(words)
                    && $0.contains(remedy)
            }, "\(problems)")
    }

    @Test(
        "a policy that means the same is written",
        arguments: [
            "small::bigint + 1 > 2", "fee::double precision > share", "name::uuid = owner",
            "(small % 2) = 0", "small::text = name", "name = martlet_user()",
            "DATE '2026-01-01' - DATE '2025-01-01' > 3",
        ])
    func written(condition: String) async throws {
        let (report, problems) = try await Self.plan(
            """
            CREATE FUNCTION martlet_user() RETURNS text STABLE LANGUAGE sql AS $$
                SELECT nullif(current_setting('martlet.user', true), '');
            $$;
            CREATE POLICY even ON things USING (\(condition));
            """)
        #expect(problems == [])
        #expect(report?.rules?.contains("CREATE POLICY even ON things") == true)
    }

    @Test("claims whose names differ by case are refused")
    func claims() async throws {
        let problems = try await Self.plan(
            """
            CREATE POLICY a ON things USING (name = current_setting('martlet.claim.Club', true));
            CREATE POLICY b ON things USING (name = current_setting('martlet.claim.club', true));
            """
        ).problems
        #expect(
            problems.first?.hasPrefix(
                "policy b of table “things” asks for the claim “club”, and another one for “Club”")
                == true, "\(problems)")
    }

    @Test("privileges on a table in a schema that a role may not use are refused")
    func schemas() async throws {
        let script = """
            CREATE SCHEMA crm; CREATE SCHEMA shop; CREATE ROLE #_a; CREATE ROLE #_b;
            GRANT USAGE ON SCHEMA crm TO #_a; GRANT USAGE ON SCHEMA shop TO #_a, #_b;
            CREATE TABLE crm.notes (id bigserial PRIMARY KEY); GRANT SELECT ON crm.notes TO #_a, #_b;
            CREATE TABLE shop.bills (id bigserial PRIMARY KEY); GRANT SELECT ON shop.bills TO PUBLIC;
            ALTER TABLE crm.notes ENABLE ROW LEVEL SECURITY;
            CREATE POLICY p ON crm.notes USING (true);
            """
        let problems = try await Self.plan(
            script, tables: ["crm.notes", "shop.bills"], isPlain: false
        ).problems
        #expect(problems.count == 3, "\(problems)")
        #expect(problems[0].hasPrefix("table “crm.notes” grants privileges to "))
        #expect(problems[0].contains("_b; GRANT USAGE") == false)
        #expect(problems[0].contains("GRANT USAGE ON SCHEMA \"crm\" TO "))
        #expect(problems[1].hasPrefix("table “shop.bills” grants privileges to PUBLIC"))
    }

    @Test("roles that PostgreSQL lets see more are told")
    func exemptions() async throws {
        let report = try await Self.plan(
            """
            CREATE ROLE #_owner; CREATE ROLE #_all BYPASSRLS; CREATE ROLE #_reader;
            GRANT pg_read_all_data TO #_reader;
            GRANT CREATE ON SCHEMA public TO #_owner;
            ALTER TABLE things OWNER TO #_owner;
            CREATE POLICY p ON things TO #_owner, #_all, #_reader USING (name = 'x');
            """
        ).report
        let notes = report?.notes ?? []
        for words in [
            "_owner acts as the owner of public.things", "_all has BYPASSRLS",
            "_reader is a member of pg_read_all_data",
        ] {
            #expect(
                notes.contains { $0.hasPrefix("the role ") && $0.contains(words) }, "\(notes)")
        }
    }

    @Test("two adoptions at once do not meet")
    func atOnce() async throws {
        try await TestDatabase.make().connected { connection in
            try connection.execute("CREATE TABLE things (id bigserial PRIMARY KEY, name text)")
            let request = PostgresAdoption.Request(name: "club", tables: ["things"])
            let other = try PostgresConnection(connection.address)
            try other.execute("BEGIN; SELECT pg_advisory_xact_lock(\(PostgresAdoption.lock))")
            let error = #expect(throws: AdoptionError.self) {
                try PostgresAdoption(on: connection, now: 1).adopt(request)
            }
            #expect(error?.description.hasPrefix("another adoption is under way") == true)
            // A closed connection's process releases its locks only when it notices the end.
            try other.execute("ROLLBACK")
            _ = try PostgresAdoption(on: connection, now: 1).adopt(request)
            other.close()
        }
    }

    @Test("a table that is adopted later needs policies in the rules file")
    func later() async throws {
        try await TestDatabase.make().connected { connection in
            try connection.execute(
                """
                CREATE TABLE things (id bigserial PRIMARY KEY, name text);
                CREATE TABLE bills (id bigserial PRIMARY KEY, name text);
                """)
            var request = PostgresAdoption.Request(name: "club", tables: ["things"])
            request.rules = .file("CREATE POLICY p ON things USING (true)")
            let adoption = PostgresAdoption(on: connection, now: 1)
            _ = try adoption.adopt(request)
            request.tables = ["bills"]
            let error = #expect(throws: AdoptionError.self) { try adoption.adopt(request) }
            #expect(
                error?.description.contains(
                    "no policy for “bills”, so nobody would see its rows; write CREATE POLICY")
                    == true, "\(String(describing: error))")
            request.rules = .none
            #expect(
                try adoption.adopt(request).notes.contains {
                    $0.contains("show nobody rows of “bills” until")
                })
        }
    }
}
