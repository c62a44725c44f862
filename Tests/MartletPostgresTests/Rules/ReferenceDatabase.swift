import MartletModel
import MartletRules
import PostgresKit

/// A PostgreSQL database with row-level security: the tables, rows and policies of a world.
struct ReferenceDatabase {
    /// A superuser's, whom no policy concerns.
    let connection: PostgresConnection
    let tables: [RandomRules.Table]

    /// Makes the tables in a database, whose contents are dropped.
    init(_ connection: PostgresConnection, _ rules: RandomRules) throws {
        self.connection = connection
        tables = rules.tables
        try connection.execute(
            """
            DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC;
            CREATE FUNCTION martlet_user() RETURNS text STABLE LANGUAGE sql
            AS $$ SELECT nullif(current_setting('martlet.user', true), '') $$;
            CREATE FUNCTION martlet_role(name text) RETURNS boolean STABLE LANGUAGE sql
            AS $$ SELECT name = ANY (string_to_array(
                coalesce(current_setting('martlet.roles', true), ''), ',')) $$;
            CREATE FUNCTION martlet_claim(name text) RETURNS text STABLE LANGUAGE sql
            AS $$ SELECT nullif(current_setting('martlet.claim.' || name, true), '') $$;
            CREATE FUNCTION martlet_today() RETURNS date STABLE LANGUAGE sql
            AS $$ SELECT current_setting('martlet.today')::date $$;
            """)
        for (table, rows) in zip(rules.tables, rules.rows) {
            let columns = table.columns.map { "\($0.name) \($0.kind.sql)" }
            // The server assigns the ids, so the one who inserts needs no right to the column.
            try connection.execute(
                """
                CREATE TABLE \(table.name) (
                    id bigint PRIMARY KEY DEFAULT current_setting('martlet.id')::bigint,
                    \(columns.joined(separator: ", ")));
                """)
            for row in rows {
                try connection.execute(Self.insertion(row, table.names, into: table))
            }
        }
    }

    /// Makes the roles that all worlds of a server share: one for each set of roles that a person may
    /// have.
    static func makeRoles(_ connection: PostgresConnection) throws {
        for role in RandomRules.roles { try connection.execute("CREATE ROLE \(role)") }
        for set in 0..<(1 << RandomRules.roles.count) {
            let roles = RandomRules.roles(of: set)
            try connection.execute("CREATE ROLE \(role(of: roles))")
            for granted in roles {
                try connection.execute("GRANT \(granted) TO \(role(of: roles))")
            }
        }
    }

    private static func role(of roles: some Sequence<String>) -> String {
        "person_" + roles.sorted().joined(separator: "_")
    }

    /// Returns the statement that inserts a row.
    static func insertion(
        _ row: [Value], _ columns: [String], into table: RandomRules.Table
    ) -> String {
        guard !columns.isEmpty else { return "INSERT INTO \(table.name) DEFAULT VALUES" }
        return """
            INSERT INTO \(table.name) (\(columns.joined(separator: ", "))) \
            VALUES (\(row.map(RandomRules.literal).joined(separator: ", ")))
            """
    }

    /// Puts a rules file in the place of the former one.
    func secure(by policies: RandomRules.Policies) throws {
        let former = try connection.query(
            "SELECT policyname::text, tablename::text FROM pg_policies")
        var script = ""
        for row in 0..<former.count {
            script += "DROP POLICY \(try former.text(row, 0)) ON \(try former.text(row, 1));\n"
        }
        for table in tables {
            let everyone = ["PUBLIC"] + RandomRules.roles
            script += """
                ALTER TABLE \(table.name) ENABLE ROW LEVEL SECURITY;
                REVOKE ALL ON \(table.name) FROM \(everyone.joined(separator: ", "));

                """
            if !policies.granted.contains(table.name) {
                script += "GRANT ALL ON \(table.name) TO PUBLIC;\n"
            }
        }
        do {
            try connection.execute(script + policies.file)
        } catch {
            throw ReferenceFailure("PostgreSQL: \(error)\n\(policies.file)")
        }
    }

    /// Calls `body` in a transaction of a person, which is undone.
    func asPerson<Result>(_ viewer: Viewer, _ body: () throws -> Result) throws -> Result {
        try connection.execute("BEGIN; SET LOCAL ROLE \(Self.role(of: viewer.roles))")
        var settings = [("user", viewer.user ?? ""), ("today", Self.day(viewer.today))]
        settings.append(("roles", viewer.roles.sorted().joined(separator: ",")))
        settings += ["club", "number"].map { ("claim.\($0)", viewer.claims[$0] ?? "") }
        do {
            for (name, value) in settings { try set(name, to: value) }
            let result = try body()
            try connection.execute("ROLLBACK")
            return result
        } catch {
            try connection.execute("ROLLBACK")
            throw error
        }
    }

    private static func day(_ days: Int64) -> String {
        String(Timestamp.rfc3339(milliseconds: days * 86_400_000).prefix(10))
    }

    /// Returns the types and ids of the records that the present role may see.
    func records() throws -> Set<String> {
        let queries = tables.map { "SELECT '\($0.name) ' || id FROM \($0.name)" }
        let answer = try connection.query(queries.joined(separator: " UNION ALL "))
        return Set(try (0..<answer.count).map { try answer.text($0, 0) })
    }

    /// Returns the ids that the present role may see of a table; nil if PostgreSQL does not let it read the
    /// table.
    func ids(of table: String) throws -> Set<Int64>? {
        let sql = "SELECT id FROM \(table)"
        guard try attempt(sql) != nil else { return nil }
        let answer = try connection.query(sql)
        return Set(try (0..<answer.count).map { try answer.integer($0, 0) })
    }

    /// Sets the id of the next record, within a transaction.
    func setNextID(_ id: Int64) throws { try set("id", to: "\(id)") }

    private func set(_ name: String, to value: String) throws {
        _ = try connection.query(
            "SELECT set_config('martlet.' || $1, $2, true)", [.text(name), .text(value)])
    }

    /// Runs a statement of a person.
    ///
    /// - Parameter isKept: Whether the statement is not undone.
    /// - Returns: The number of rows that it found or wrote; nil if PostgreSQL does not allow it.
    func attempt(_ sql: String, isKept: Bool = false) throws -> Int? {
        try connection.execute("SAVEPOINT one")
        do {
            let count = try connection.query(sql).affectedCount
            if !isKept { try connection.execute("ROLLBACK TO one") }
            return count
        } catch {
            try connection.execute("ROLLBACK TO one")
            guard error.sqlState == "42501" else { throw error }
            return nil
        }
    }
}

struct ReferenceFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
