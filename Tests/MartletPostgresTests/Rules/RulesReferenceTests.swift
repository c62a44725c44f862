import Foundation
import MartletModel
import MartletRules
import PostgresKit
import TestDatabases
import Testing

/// Rows in memory.
private struct TestRows: RuleRows {
    let tables: [[RuleRow]]

    func visit(
        _ type: Int, where match: (column: Int, value: Value)?, _ body: (RuleRow) throws -> Bool
    ) throws {
        for row in tables[type] where match.map({ row[$0.column] == $0.value }) ?? true {
            guard try body(row) else { return }
        }
    }
}

/// The same rows, policies and people in PostgreSQL and in Martlet.
struct RulesReference {
    private static let today: Int64 = 20_784  // 2026-11-27
    private let seed: UInt64
    private let rules: RandomRules
    private let program: RulesProgram
    private let connection: PostgresConnection
    private let servers: RulesOnServers
    private var chance: Chance
    private var faults: [String] = []
    /// How many answers were compared, and how many of them allow something.
    private(set) var counts = (compared: 0, allowed: 0, judged: 0)

    /// - Parameters:
    ///   - connection: The database that is the reference.
    ///   - other: The one of Martlet's server.
    init(seed: UInt64, _ connection: PostgresConnection, other: PostgresAddress) throws {
        self.seed = seed
        self.connection = connection
        chance = Chance(seed: seed)
        rules = RandomRules(&chance)
        let types = rules.tables.map { table in
            EntityType(
                name: table.name, key: "id", keyKind: .integer,
                attributes: table.columns.map { Attribute(name: $0.name, kind: $0.kind.kind) })
        }
        do {
            program = try RulesProgram(rules.file, schema: Schema(types: types))
        } catch {
            throw ReferenceFailure("seed \(seed): \(error)\n\(rules.file)")
        }
        servers = try RulesOnServers(
            rules, database: other, now: Self.today * 86_400_000 + 3_600_000)
        try fill()
    }

    /// Makes the roles that all worlds share: one for each set of roles that a person may have.
    static func makeRoles(_ connection: PostgresConnection) throws {
        for role in RandomRules.roles { try connection.execute("CREATE ROLE \(role)") }
        for set in 0..<(1 << RandomRules.roles.count) {
            try connection.execute("CREATE ROLE person\(set)")
            for role in roles(of: set) {
                try connection.execute("GRANT \(role) TO person\(set)")
            }
        }
    }

    private static func roles(of set: Int) -> [String] {
        RandomRules.roles.enumerated().filter { set >> $0.offset & 1 == 1 }.map(\.element)
    }

    private func fill() throws {
        try connection.execute(
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC"
        )
        try connection.execute(
            """
            CREATE FUNCTION martlet_user() RETURNS text STABLE LANGUAGE sql
            AS $$ SELECT nullif(current_setting('martlet.user', true), '') $$;
            CREATE FUNCTION martlet_role(name text) RETURNS boolean STABLE LANGUAGE sql
            AS $$ SELECT name = ANY(string_to_array(current_setting('martlet.roles', true), ',')) $$;
            CREATE FUNCTION martlet_claim(name text) RETURNS text STABLE LANGUAGE sql
            AS $$ SELECT nullif(current_setting('martlet.claim.' || name, true), '') $$;
            CREATE FUNCTION martlet_today() RETURNS date STABLE LANGUAGE sql
            AS $$ SELECT date '1970-01-01' + \(Self.today) $$;
            """)
        for (table, rows) in zip(rules.tables, rules.rows) {
            let columns = table.columns.map { "\($0.name) \($0.kind.sql)" }
            try connection.execute(
                """
                CREATE TABLE \(table.name) (
                    id bigint PRIMARY KEY DEFAULT \(rows.count + 1), \(columns.joined(separator: ", ")));
                ALTER TABLE \(table.name) ENABLE ROW LEVEL SECURITY;
                """)
            for row in rows {
                try connection.execute(Self.insertion(row, table.names, into: table))
            }
            if !rules.granted.contains(table.name) {
                try connection.execute("GRANT ALL ON \(table.name) TO PUBLIC")
            }
        }
        do {
            try connection.execute(rules.file)
        } catch {
            throw ReferenceFailure("seed \(seed), PostgreSQL: \(error)\n\(rules.file)")
        }
    }

    static func insertion(
        _ row: [Value], _ columns: [String], into table: RandomRules.Table
    ) -> String {
        """
        INSERT INTO \(table.name) (\(columns.joined(separator: ", "))) \
        VALUES (\(row.map(RandomRules.literal).joined(separator: ", ")))
        """
    }

    /// Compares what some people may see and do.
    /// - Returns: The differences.
    mutating func compare() throws -> [String] {
        for _ in 0..<4 {
            let set = chance.number(0..<(1 << RandomRules.roles.count))
            let roles = Self.roles(of: set)
            let user = chance.percent(80) ? chance.one(of: ["ann", "bob", "zoë"]) : nil
            var claims: [String: String] = [:]
            if chance.percent(60) {
                claims["club"] = chance.one(of: RandomRules.texts.filter { !$0.isEmpty })
            }
            if chance.percent(60) { claims["number"] = "\(chance.number(-1..<5))" }
            let viewer = Viewer(user: user, roles: Set(roles), claims: claims, today: Self.today)
            try connection.execute("BEGIN; SET LOCAL ROLE person\(set)")
            let settings =
                [("user", user ?? ""), ("roles", roles.joined(separator: ","))]
                + ["club", "number"].map { ("claim.\($0)", claims[$0] ?? "") }
            for (name, value) in settings {
                _ = try connection.query(
                    "SELECT set_config('martlet.' || $1, $2, true)", [.text(name), .text(value)])
            }
            let evaluator = RuleEvaluator(
                program, for: viewer, over: TestRows(tables: rules.rows))
            for type in rules.tables.indices { try compare(type, evaluator, viewer) }
            try connection.execute("ROLLBACK")
        }
        return faults.isEmpty ? [] : ["seed \(seed)"] + faults + [rules.file]
    }

    private mutating func compare(
        _ type: Int, _ evaluator: RuleEvaluator, _ viewer: Viewer
    ) throws {
        let table = rules.tables[type]
        let answer = try connection.query("SELECT id FROM \(table.name) ORDER BY id")
        let seen = try (0..<answer.count).map { try answer.integer($0, 0) }
        for row in rules.rows[type] {
            guard case .integer(let id) = row[0] else { continue }
            judge(
                "SELECT \(table.name) \(id)", viewer, seen.contains(id),
                try evaluator.maySelect(row, of: type))
            let judgement = try evaluator.judgement(of: row, type: type)
            if judgement.basis == .policies {
                let permits = judgement.policies.contains {
                    $0.isPermissive && $0.outcome == .holds
                }
                let restricts = judgement.policies.contains {
                    !$0.isPermissive && $0.outcome != nil && $0.outcome != .holds
                }
                #expect((permits && !restricts) == judgement.isShown, "\(judgement)")
            }
            try judge(
                "DELETE FROM \(table.name) WHERE id = \(id)", viewer,
                try evaluator.maySelect(row, of: type)
                    && evaluator.refusalToDelete(row, of: type) == nil,
                .delete(id), of: table.name)
            for _ in 0..<2 {
                let columns = table.columns.indices.filter { _ in chance.percent(50) }
                guard !columns.isEmpty else { continue }
                var new = row
                for column in columns {
                    new[column + 1] = RandomRules.value(table.columns[column].kind, &chance)
                }
                let list = columns.map {
                    "\(table.columns[$0].name) = \(RandomRules.literal(new[$0 + 1]))"
                }
                try judge(
                    "UPDATE \(table.name) SET \(list.joined(separator: ", ")) WHERE id = \(id)",
                    viewer,
                    try evaluator.maySelect(row, of: type)
                        && evaluator.refusalToUpdate(
                            row, columns: columns.map { table.columns[$0].name }, of: type) == nil
                        && evaluator.refusalToLeave(new, of: type) == nil,
                    .update(
                        id, columns.map { table.columns[$0].name }, columns.map { new[$0 + 1] }),
                    of: table.name)
            }
        }
        for _ in 0..<4 {
            let row = RandomRules.row(
                Int64(rules.rows[type].count + 1), of: table, &chance)
            let (names, values) = (Array(table.names.dropFirst()), Array(row.dropFirst()))
            try judge(
                Self.insertion(values, names, into: table), viewer,
                try evaluator.refusalToInsert(row, columns: names, of: type) == nil,
                .create(names, values), of: table.name)
        }
    }

    /// Runs a statement, which is undone, and compares whether it is allowed; for some statements on
    /// Martlet's servers as well.
    private mutating func judge(
        _ sql: String, _ viewer: Viewer, _ answer: Bool, _ operation: RulesOnServers.Operation,
        of table: String
    ) throws {
        var isAllowed = false
        do {
            try connection.execute("SAVEPOINT one")
            isAllowed = try connection.query(sql).affectedCount == 1
            try connection.execute("ROLLBACK TO one")
        } catch {
            try connection.execute("ROLLBACK TO one")
            guard error.sqlState == "42501" else {
                throw ReferenceFailure("\(sql): \(error)\n\(rules.file)")
            }
        }
        judge(sql, viewer, isAllowed, answer)
        guard chance.percent(4) else { return }
        for verdict in try servers.verdicts(on: operation, of: table, by: viewer) {
            counts.judged += 1
            guard verdict.isAllowed != isAllowed, faults.count < 3 else { continue }
            faults.append(
                "\(sql) by \(viewer): PostgreSQL says \(isAllowed), the server on \(verdict.server):"
                    + " \(verdict.words)")
        }
    }

    private mutating func judge(
        _ what: String, _ viewer: Viewer, _ expected: Bool, _ answer: Bool
    ) {
        counts.compared += 1
        if expected { counts.allowed += 1 }
        guard expected != answer, faults.count < 3 else { return }
        faults.append("\(what) by \(viewer): PostgreSQL says \(expected), Martlet \(answer)")
    }
}

private struct ReferenceFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

@Suite("Rules against PostgreSQL's row-level security")
struct RulesReferenceTests {
    private static let worlds =
        ProcessInfo.processInfo.environment["MARTLET_RULES_WORLDS"].flatMap(UInt64.init) ?? 30
    private static let first =
        ProcessInfo.processInfo.environment["MARTLET_RULES_SEED"].flatMap(UInt64.init) ?? 0

    @Test("everyone sees and does what PostgreSQL lets him see and do")
    func randomPolicies() async throws {
        let servers = try await DatabaseServers.start()
        let database = try await TestDatabase.make(on: servers)
        let other = try await TestDatabase.make(on: servers).address
        let counts = try await database.connected { connection in
            try RulesReference.makeRoles(connection)
            var counts = (compared: 0, allowed: 0, judged: 0)
            for seed in Self.first..<Self.first + Self.worlds {
                var world = try RulesReference(seed: seed, connection, other: other)
                let differences = try world.compare()
                #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
                counts.compared += world.counts.compared
                counts.allowed += world.counts.allowed
                counts.judged += world.counts.judged
            }
            return [counts.compared, counts.allowed, counts.judged]
        }
        // Neither “always” nor “never” would pass.
        #expect(counts[2] > 10)
        #expect(counts[1] * 10 > counts[0] && counts[1] * 10 < counts[0] * 9, "\(counts)")
    }
}
