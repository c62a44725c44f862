import MartletModel
import MartletRules
import PostgresKit

/// A PostgreSQL database with row-level security: the tables, rows and policies of a world.
struct ReferenceDatabase {
    /// A superuser's, whom no policy concerns.
    let connection: PostgresConnection
    let tables: [RandomRules.Table]

    init(connection: PostgresConnection, tables: [RandomRules.Table]) {
        self.connection = connection
        self.tables = tables
    }

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
        try connection.execute(rules.script(.reference))
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

    /// Puts a rules file in the place of the former one.
    func secure(by policies: RandomRules.Policies) throws {
        let former = try connection.query(
            "SELECT format('DROP POLICY %I ON %I; ', policyname, tablename) FROM pg_policies")
        var script = try (0..<former.count).map { try former.text($0, 0) }.joined()
        for table in tables {
            let everyone = ["PUBLIC"] + RandomRules.roles
            script += """
                ALTER TABLE \(table.sql) ENABLE ROW LEVEL SECURITY;
                REVOKE ALL ON \(table.sql) FROM \(everyone.joined(separator: ", "));

                """
            if !policies.granted.contains(table.name) {
                script += "GRANT ALL ON \(table.sql) TO PUBLIC;\n"
            }
        }
        do {
            try connection.execute(script + policies.file)
        } catch {
            throw ReferenceFailure("PostgreSQL: \(error)\n\(policies.file)")
        }
    }

    /// Changes rows, each by a statement, while triggers and constraints rest.
    func run(_ statements: [String]) throws {
        guard !statements.isEmpty else { return }
        try connection.execute("SET session_replication_role = replica")
        for sql in statements {
            guard try connection.query(sql).affectedCount == 1 else {
                throw ReferenceFailure("\(sql): the log does not fit the reference's rows")
            }
        }
        try connection.execute("SET session_replication_role = origin")
    }

    /// Calls `body` in a transaction of a person, which is undone.
    func asPerson<Result>(_ viewer: Viewer, _ body: () throws -> Result) throws -> Result {
        var settings = [("user", viewer.user ?? ""), ("today", Self.day(viewer.today))]
        settings.append(("roles", viewer.roles.sorted().joined(separator: ",")))
        settings += ["club", "number"].map { ("claim.\($0)", viewer.claims[$0] ?? "") }
        let calls = settings.map {
            "set_config('martlet.\($0)', \(RandomRules.literal(.text($1))), true)"
        }
        try connection.execute(
            "BEGIN; SELECT \(calls.joined(separator: ", ")); \(Self.becoming(viewer))")
        do {
            let result = try body()
            try connection.execute("ROLLBACK")
            return result
        } catch {
            try connection.execute("ROLLBACK")
            throw error
        }
    }

    /// Goes on with a person's rights, or with all rights if he is nil.
    func become(_ viewer: Viewer?) throws { try connection.execute(Self.becoming(viewer)) }

    private static func becoming(_ viewer: Viewer?) -> String {
        "SET LOCAL ROLE \(viewer.map { role(of: $0.roles.sorted()) } ?? "NONE")"
    }

    private static func day(_ days: Int64) -> String {
        String(Timestamp.rfc3339(milliseconds: days * 86_400_000).prefix(10))
    }

    /// Returns the types and ids of the records that the present role may see.
    func records() throws -> Set<String> {
        let queries = tables.map { table in
            let name = RandomRules.literal(.text(table.name + " "))
            return "SELECT \(name) || \(table.sqlKey) FROM \(table.sql)"
        }
        let answer = try connection.query(queries.joined(separator: " UNION ALL "))
        return Set(try (0..<answer.count).map { try answer.text($0, 0) })
    }

    /// Returns the ids that the present role may see of a table; nil if PostgreSQL does not let it read the
    /// table.
    func ids(of table: RandomRules.Table) throws -> Set<RecordID>? {
        let sql = "SELECT \(table.sqlKey)::text FROM \(table.sql)"
        guard try attempt(sql) != .denied else { return nil }
        let answer = try connection.query(sql)
        return Set(try (0..<answer.count).map { table.id(try answer.text($0, 0)) })
    }

    /// Returns the rows that the present role may see, each as a line.
    func lines() throws -> [String] {
        try tables.flatMap { table in
            try connection.query(table.selection).values().map { row in
                table.line(row.map { $0.text })
            }
        }.sorted()
    }

    /// Sets the id of the next record, within a transaction.
    func setNextID(_ id: Int64) throws { try connection.execute("SET LOCAL martlet.id = \(id)") }

    /// The outcome of a statement.
    enum Outcome: Equatable {
        /// PostgreSQL allows it; it found or wrote this number of rows.
        case rows(Int)
        /// PostgreSQL does not allow it.
        case denied
        /// PostgreSQL allows it, and a constraint refuses the rows.
        case violates
    }

    /// Runs a statement of a person.
    ///
    /// - Parameter isKept: Whether the statement is not undone.
    func attempt(_ sql: String, isKept: Bool = false) throws -> Outcome {
        try connection.execute("SAVEPOINT one")
        do {
            let count = try connection.query(sql).affectedCount
            if !isKept { try connection.execute("ROLLBACK TO one") }
            return .rows(count)
        } catch {
            try connection.execute("ROLLBACK TO one")
            if error.sqlState?.hasPrefix("23") == true { return .violates }
            guard error.sqlState == "42501" else { throw error }
            return .denied
        }
    }
}

extension RandomRules.Table {
    /// Returns the condition of the record with this id.
    func condition(_ id: RecordID) -> String { "\(sqlKey) = \(RandomRules.literal(id.value))" }

    /// The statement that selects all rows.
    var selection: String {
        "SELECT \(([sqlKey] + columns.map(\.sql)).joined(separator: ", ")) FROM \(sql)"
    }

    /// Returns a row in the same form whatever database has it: PostgreSQL keeps the zeros at the end of a
    /// number.
    func line(_ values: [String?]) -> String {
        let texts = zip(columns, values.dropFirst()).map { column, text in
            guard let text else { return "-" }
            switch column.kind {
            case .numeric, .real: return Double(text).map { "\($0)" } ?? text
            case .boolean: return text == "t" ? "1" : text == "f" ? "0" : text
            case .integer, .text, .date, .json, .uuid: return "“\(text)”"
            }
        }
        return "\(name) \(values[0] ?? "-") \(texts.joined(separator: " "))"
    }
}

struct ReferenceFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
