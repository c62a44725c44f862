import Foundation
import MartletModel
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres
@testable import MartletRules

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
    private let reference: ReferenceDatabase
    private let servers: RulesOnServers?
    private var chance: Chance
    private var faults: [String] = []
    /// How many answers were compared, and how many of them allow something.
    private(set) var counts = (compared: 0, allowed: 0, judged: 0)
    /// How often PostgreSQL refused to read a table, also because its policies read another one, and how
    /// often only Martlet did.
    private(set) var unread = (both: 0, martlet: 0)

    /// - Parameters:
    ///   - connection: The database that is the reference.
    ///   - other: The one of Martlet's server. If it is nil, the rules are those that an adoption
    ///     makes of the policies in the first database.
    init(seed: UInt64, _ connection: PostgresConnection, other: PostgresAddress?) throws {
        self.seed = seed
        chance = Chance(seed: seed)
        let rules = RandomRules(&chance, restrictsReading: true)
        self.rules = rules
        servers = try other.map {
            try RulesOnServers(
                rules, database: $0, now: Self.today * 86_400_000 + 3_600_000)
        }
        reference = try ReferenceDatabase(connection, rules)
        try reference.secure(by: rules.policies)
        guard other != nil else {
            program = try Self.adopted(connection, rules, seed)
            return
        }
        do {
            program = try RulesProgram(rules.policies.file, schema: rules.schema(dates: .any))
        } catch {
            throw ReferenceFailure("seed \(seed): \(error)\n\(rules.policies.file)")
        }
    }

    /// Returns the rules that an adoption makes of the database's policies, read again.
    private static func adopted(
        _ connection: PostgresConnection, _ rules: RandomRules, _ seed: UInt64
    ) throws -> RulesProgram {
        var request = PostgresAdoption.Request(
            name: "rules", tables: rules.tables.map { "public.\($0.name)" })
        request.rules = .ofDatabase
        let schema = rules.schema(dates: .text)
        var text = ""
        do {
            // Adoption refuses policies by which nobody would see anything.
            let written = try RulesProgram(rules.policies.file, schema: schema)
            if written.showsNothing { return written }
            // With the log's tables in the database, people would write to them by triggers.
            text = try PostgresAdoption(on: connection, now: 1).plan(request).rules ?? ""
            return try RulesProgram(text, schema: schema)
        } catch {
            throw ReferenceFailure("seed \(seed): \(error)\n\(rules.policies.file)\n\(text)")
        }
    }

    /// Returns what judges for somebody: the rules themselves, or the part that a device of his has.
    private func evaluator(for viewer: Viewer) throws -> RuleEvaluator {
        let rows = TestRows(tables: rules.rows)
        guard seed % 2 == 1 else { return RuleEvaluator(program, for: viewer, over: rows) }
        let excerpt = program.excerpt(for: viewer)
        var asked = excerpt.viewer
        asked.today = viewer.today
        return RuleEvaluator(
            try RulesProgram(excerpt.text, schema: program.schema), for: asked, over: rows)
    }

    /// Compares what some people may see and do.
    /// - Returns: The differences.
    mutating func compare() throws -> [String] {
        let reference = reference
        for _ in 0..<4 {
            let set = chance.number(0..<(1 << RandomRules.roles.count))
            let roles = RandomRules.roles(of: set)
            let user = chance.percent(80) ? chance.one(of: ["ann", "bob", "zoë"]) : nil
            var claims: [String: String] = [:]
            if chance.percent(60) {
                claims["club"] = chance.one(of: RandomRules.texts.filter { !$0.isEmpty })
            }
            if chance.percent(60) { claims["number"] = "\(chance.number(-1..<5))" }
            let viewer = Viewer(user: user, roles: Set(roles), claims: claims, today: Self.today)
            let evaluator = try evaluator(for: viewer)
            do {
                try reference.asPerson(viewer) {
                    for type in rules.tables.indices { try compare(type, evaluator, viewer) }
                }
            } catch {
                throw ReferenceFailure("seed \(seed): \(error)\n\(rules.policies.file)")
            }
        }
        guard !faults.isEmpty else { return [] }
        return ["seed \(seed)"] + faults + [rules.policies.file, program.text]
    }

    private mutating func compare(
        _ type: Int, _ evaluator: RuleEvaluator, _ viewer: Viewer
    ) throws {
        let table = rules.tables[type]
        let next = Int64(rules.rows[type].count + 1)
        try reference.setNextID(next)
        let seen = try reference.ids(of: table)
        if evaluator.isUnreadable(type) {
            // PostgreSQL forgets about queries in a condition that constants decide.
            guard seen == nil else {
                unread.martlet += 1
                return
            }
            unread.both += 1
        }
        for row in rules.rows[type] {
            guard let id = RecordID(row[0]) else { continue }
            judge(
                "SELECT \(table.name) \(id)", viewer, seen?.contains(id) ?? false,
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
            try compare(row, id, of: type, evaluator, viewer)
        }
        for _ in 0..<4 {
            let key = RandomRules.key(table.keyKind, Int(next) - 1)
            let row = [key] + table.columns.map { RandomRules.value(of: $0, &chance) }
            // A column that stays NULL needs no privilege.
            let written = zip(table.given, row.dropFirst(row.count - table.given.count))
                .filter { $1 != .null }
            let (names, values) = (written.map(\.0), written.map(\.1))
            try judge(
                RandomRules.insertion(values, names, into: table), viewer,
                try evaluator.refusalToInsert(row, columns: names, of: type) == nil,
                .create(
                    table.keyKind == .text ? RecordID(key) ?? .integer(-1) : .integer(-1),
                    table.columns.map(\.name), Array(row.dropFirst())), of: table.name)
        }
    }

    /// Compares who may delete a row, and change it.
    private mutating func compare(
        _ row: [Value], _ id: RecordID, of type: Int, _ evaluator: RuleEvaluator, _ viewer: Viewer
    ) throws {
        let table = rules.tables[type]
        let place = "\(table.sqlKey) = \(RandomRules.literal(row[0]))"
        try judge(
            "DELETE FROM \(table.sql) WHERE \(place)", viewer,
            try evaluator.maySelect(row, of: type)
                && evaluator.refusalToDelete(row, of: type) == nil,
            .delete(id), of: table.name)
        for _ in 0..<2 {
            let columns = table.columns.indices.filter { _ in chance.percent(50) }
            guard !columns.isEmpty else { continue }
            var new = row
            for column in columns {
                new[column + 1] = RandomRules.value(of: table.columns[column], &chance)
            }
            let list = columns.map {
                "\(table.columns[$0].sql) = \(RandomRules.literal(new[$0 + 1]))"
            }
            let names = columns.map { table.columns[$0].name }
            try judge(
                "UPDATE \(table.sql) SET \(list.joined(separator: ", ")) WHERE \(place)",
                viewer,
                try evaluator.maySelect(row, of: type)
                    && evaluator.refusalToUpdate(row, columns: names, of: type) == nil
                    && evaluator.refusalToLeave(new, of: type) == nil,
                .update(id, names, columns.map { new[$0 + 1] }), of: table.name)
        }
    }

    /// Runs a statement, which is undone, and compares whether it is allowed; for some statements on
    /// Martlet's servers as well.
    private mutating func judge(
        _ sql: String, _ viewer: Viewer, _ answer: Bool, _ operation: RulesOnServers.Operation,
        of table: String
    ) throws {
        let isAllowed = try reference.attempt(sql) == .rows(1)
        judge(sql, viewer, isAllowed, answer)
        guard let servers, chance.percent(4) else { return }
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

extension RuleEvaluator {
    /// Returns whether the viewer may not read a type, because its policies read one that he may not.
    fileprivate func isUnreadable(_ type: Int) -> Bool { unreadable[.select]?[type] != nil }
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
            try ReferenceDatabase.makeRoles(connection)
            var counts = (compared: 0, allowed: 0, judged: 0)
            var unread = (both: 0, martlet: 0)
            for seed in Self.first..<Self.first + Self.worlds {
                var world = try RulesReference(seed: seed, connection, other: other)
                let differences = try world.compare()
                #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
                counts.compared += world.counts.compared
                counts.allowed += world.counts.allowed
                counts.judged += world.counts.judged
                unread.both += world.unread.both
                unread.martlet += world.unread.martlet
            }
            return [counts.compared, counts.allowed, counts.judged, unread.both, unread.martlet]
        }
        #expect(counts[3] * 4 > Int(Self.worlds) && counts[4] * 20 <= counts[3], "\(counts)")
        // Neither “always” nor “never” would pass.
        #expect(counts[2] > 10)
        #expect(counts[1] * 10 > counts[0] && counts[1] * 10 < counts[0] * 9, "\(counts)")
    }

    @Test("everyone sees and does the same by the rules that adoption makes of policies")
    func adoptedPolicies() async throws {
        let servers = try await DatabaseServers.start(["--postgres"])
        let counts = try await TestDatabase.make(on: servers).connected { connection in
            try ReferenceDatabase.makeRoles(connection)
            var counts = (compared: 0, allowed: 0)
            for seed in Self.first..<Self.first + Self.worlds {
                var world = try RulesReference(seed: seed, connection, other: nil)
                let differences = try world.compare()
                #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
                counts.compared += world.counts.compared
                counts.allowed += world.counts.allowed
            }
            return [counts.compared, counts.allowed]
        }
        #expect(counts[1] * 10 > counts[0] && counts[1] * 10 < counts[0] * 9, "\(counts)")
    }
}
