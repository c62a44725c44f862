import MartletModel
import MartletProtocol
import MartletTesting
import SQLiteKit
import SetTexts

@testable import MartletServerCore

/// Tables that chance declares in a server's file; another program that writes to the file, while the
/// server runs and while it does not; and devices whose sets move values about.
///
/// After each step the tables hold what the folded log holds, or a sentence has named the row. A set that
/// is up to date, and whose outcome the tables can hold, is accepted. What a set has done, its author may do.
final class ServedFileWorld {
    private let seed: UInt64
    private let schema: RandomSchema
    private let file: ServedFile
    private var program: ServerProgram
    private var sets: SetMaker
    private var random: SeededRandom
    private var rules = Rules.everything
    private var history: [String] = []
    private var sequences: [String: Int64] = [:]
    private(set) var tally: [String: Int] = [:]

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededRandom(seed: seed &* 0x94d0_49bb_1331_11eb &+ 11)
        schema = Self.schema(using: &random)
        program = ServerProgram(schema, seed: seed)
        let tables = schema.tables.map(\.served)
        file = try ServedFile("served-\(seed)", script: schema.script, tables: tables)
        sets = SetMaker(schema, seed: seed)
        if random.chance(50) { makeRules() }
    }

    /// The tables: in half of the worlds those of several that have most in one column, as what is rare by
    /// itself meets seldom.
    private static func schema(using random: inout SeededRandom) -> RandomSchema {
        let words = ["UNIQUE", "CHECK", "NOT NULL", "NOCASE", "REFERENCES", "BLOB"]
        let actions = ["ON DELETE CASCADE", "ON DELETE SET NULL"]
        func weight(_ schema: RandomSchema) -> Int {
            let hasAction = actions.contains { schema.script.contains($0) }
            return (hasAction ? 27 : 0) + (schema.circle == nil ? 0 : 20)
                + schema.script.split(separator: ", ").map { part in
                    let count = words.count { part.contains($0) }
                    return count * count * count
                }.reduce(0) { max($0, $1) }
        }
        let drawn = (0..<(random.chance(50) ? 12 : 1)).map { _ in
            RandomSchema(using: &random, rare: true)
        }
        return drawn.max { weight($0) < weight($1) } ?? RandomSchema(using: &random, rare: true)
    }

    /// Members may do some things to some tables.
    private func makeRules() {
        var types: [String: Operations] = [:]
        let tables = random.chance(50) ? [random.one(of: schema.tables)] : schema.tables
        for table in tables {
            types[table.name] = Operations(rawValue: Int.random(in: 0...7, using: &random))
        }
        rules = Rules(roles: ["member": Rules.Grant(types: types)])
        file.prepare = { [rules] node, _ in node.rules = rules }
        try? file.node.rules = rules
    }

    /// What is wrong, with the story; nothing if all is well.
    func run(steps: Int) -> [String] {
        do {
            for _ in 0..<8 { try run(program.populating(), on: file.program()) }
            for _ in 0..<steps where file.faults.isEmpty {
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<45: try write()
                case 45..<92: try exchange()
                default:
                    file.close()
                    try file.open()
                    if random.chance(50) { while try !file.node.compact(keeping: 0).isDone {} }
                }
                try file.converge()
                try file.compare()
            }
            if file.faults.isEmpty { try file.compareWhole() }
            try checkIntegrity()
        } catch {
            file.fail("\(error)")
        }
        guard !file.faults.isEmpty else { return [] }
        return file.faults.map { "!! \($0)" } + ["seed \(seed)", schema.script] + history.suffix(12)
    }

    /// SQLite finds nothing wrong with the file, whatever was pushed out of it.
    private func checkIntegrity() throws {
        let check = try file.program().prepare("PRAGMA integrity_check")
        while try check.step() {
            if check.text(0) != "ok" { file.fail(check.text(0)) }
        }
    }

    private func count(_ name: String) { tally[name, default: 0] += 1 }

    // MARK: - Another program

    private func write() throws {
        let isAtRest = random.chance(30)
        if isAtRest { file.close() }
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            try run(program.transaction(), on: file.program())
        }
        if isAtRest {
            history.append("-- the server was down")
            try file.open()
        }
    }

    /// It may fail only because a constraint refuses it, or a table has no keys left.
    private func run(_ script: String, on connection: Connection) {
        do {
            try connection.execute(script)
            history.append(script)
            count("written")
        } catch {
            history.append(script + "\n-- failed: \(error.message)")
            count("failed")
            let isJudged = error.isConstraint || error.isMismatch || error.isDiskFull
            if !isJudged { file.fail("a program's statement failed: \(error)") }
            if random.chance(50) { try? connection.execute("COMMIT") }
        }
    }

    // MARK: - Devices

    private func exchange() throws {
        try file.converge()
        try file.compare()
        guard file.faults.isEmpty else { return }
        let before = try file.rows()
        guard let made = sets.make(before, file) else { return }
        let isMember = random.chance(40)
        let device = random.one(of: ["d1", "d2"]) + (isMember ? "m" : "")
        sequences[device, default: 0] += 1
        let sequence = sequences[device] ?? 0
        var set = made.set
        (set.identifier, set.sequence) = ("\(device)-\(sequence)", sequence)
        set.seen = file.through
        let unseen = unseen(before, by: made.set)
        let namesUnseen = unseen.contains(where: \.isNamed)
        if namesUnseen { count("unseen") }
        var request = SyncRequest(maxRevision: file.through, changeSets: [set])
        request.clientID = device
        let roles = isMember ? ["member"] : []
        let answer = try file.answer(
            request, as: Principal(name: device, user: device, roles: roles))
        history.append("-- \(device): \(made.words)")
        guard let verdict = answer.changeSets.last else { return file.fail("a set has no verdict") }
        history.append(
            "-- \(verdict.revision.map { "accepted \($0)" } ?? "\(verdict.message ?? "?")")")
        try file.fold()
        let after = try file.rows()
        guard verdict.revision != nil else {
            count("refused")
            if keys(before) != keys(after) { file.fail("a refused set has changed the tables") }
            let isAllowed = roles.isEmpty || rules == .everything
            if isAllowed, !namesUnseen, try made.mustFit(before, file) {
                file.fail("the tables can hold it, but it was refused: \(verdict.message ?? "")")
            }
            return
        }
        for row in unseen
        where after[row.table]?.contains(where: { $0.literals == row.literals }) != true {
            file.fail(
                "no device has seen \(row.table) \(row.literals), and a set overrode it".clipped)
        }
        count(made.words.contains("moves") ? "moved" : "accepted")
        let others = changedCount(before, after) - made.set.recordCount
        if others > 0 { count(isMember ? "reached by a member" : "reached") }
        if isMember { judgeRights(before, after) }
    }

    /// A row that is not what the log says.
    private struct Unseen {
        let table: String
        let literals: [String]
        /// Whether the set names it.
        let isNamed: Bool
    }

    /// The rows that a set must leave as they are: those it names; and if nothing happens behind sets, all under
    /// keys that devices can be sent.
    private func unseen(_ rows: ServedFile.Rows, by set: ChangeSet) -> [Unseen] {
        let isPlain = !schema.script.contains("TRIGGER")
        var unseen: [Unseen] = []
        for table in schema.tables {
            let changes = set.types.filter { $0.name == table.name }
            let named = Set(changes.flatMap { $0.update + $0.delete })
            for row in rows[table.name] ?? [] {
                guard let id = row.id, !file.holds(id, row, of: table.name) else { continue }
                guard isPlain || named.contains(id) else { continue }
                unseen.append(
                    Unseen(
                        table: table.name, literals: row.literals, isNamed: named.contains(id)))
            }
        }
        return unseen
    }

    private func keys(_ rows: ServedFile.Rows) -> [String: [String: [String]]] {
        rows.mapValues { rows in
            Dictionary(rows.map { ($0.literals[0], $0.literals) }, uniquingKeysWith: { $1 })
        }
    }

    private func changedCount(_ before: ServedFile.Rows, _ after: ServedFile.Rows) -> Int {
        let (before, after) = (keys(before), keys(after))
        return schema.tables.reduce(into: 0) { sum, table in
            let (old, new) = (before[table.name] ?? [:], after[table.name] ?? [:])
            sum += Set(old.keys).union(new.keys).count { old[$0] != new[$0] }
        }
    }

    /// The author of a set may do what it did to the records.
    private func judgeRights(_ before: ServedFile.Rows, _ after: ServedFile.Rows) {
        let author = Principal(name: "m", roles: ["member"])
        let (before, after) = (keys(before), keys(after))
        for table in schema.tables {
            let (old, new) = (before[table.name] ?? [:], after[table.name] ?? [:])
            var done: Operations = []
            for (key, row) in old where new[key] != row {
                done.insert(new[key] == nil ? .delete : .update)
            }
            if new.keys.contains(where: { old[$0] == nil }) { done.insert(.create) }
            let allowed = rules.operations(of: author, on: table.name)
            guard !allowed.isSuperset(of: done) else { continue }
            file.fail(
                "a member has done \(done.rawValue) to \(table.name), not \(allowed.rawValue)")
        }
    }
}

extension RandomTable {
    var served: ServedTable {
        ServedTable(
            name: name, key: key, isText: isText,
            columns: columns.map { column in
                let kind: ServedTable.Kind =
                    switch column.kind {
                    case .text: .text
                    case .integer: .integer
                    case .real: .real
                    // STRICT tables have no such type.
                    case .boolean: script.contains(") STRICT") ? .integer : .boolean
                    case .untyped: .untyped
                    case .blob: .blob
                    }
                return (column.name, kind)
            })
    }
}
