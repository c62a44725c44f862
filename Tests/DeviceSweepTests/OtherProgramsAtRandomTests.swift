import MartletProtocol
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet

/// Tables that chance declares, on a device and a server, and another program that writes to the
/// device's file whatever SQLite takes.
private final class WrittenWorld {
    private typealias Rows = [String: [String: [String]]]

    private let schema: RandomSchema
    private let world: SmallWorld
    private let device: SmallDevice
    private var statements: RandomStatements
    private var random: SeededBits
    private var history: [String] = []
    private let seed: UInt64
    /// Whether something was done since the last exchange that a server may judge otherwise.
    private var isLoose = false
    private(set) var tally: [String: Int] = [:]

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededBits(state: seed &* 0x1234_5678_9abc_def1)
        schema = RandomSchema(using: &random)
        statements = RandomStatements(schema, seed: seed)
        world = try SmallWorld("written-\(seed)", script: schema.script)
        device = try world.device(script: schema.script)
    }

    func run(steps: Int) throws {
        if random.chance(40) { addTriggers() }
        for _ in 0..<steps {
            if random.chance(10) { try renameAndBack() } else { try step() }
            if random.chance(40) { try exchange() }
        }
        try exchange()
    }

    private var story: String {
        "seed \(seed)\n\(schema.script)\n" + history.suffix(12).joined(separator: "\n--\n")
    }

    /// Triggers of another program's, on the device alone, which SQLite runs before those of capture.
    private func addTriggers() {
        let table = random.one(of: schema.tables)
        let column = random.one(of: table.columns)
        let value = column.target == nil ? column.kind.literal(using: &random) : "NULL"
        let (key, change) = (table.quotedKey, "\(column.quoted) = \(value)")
        let same = "\(column.quoted) IS \(value)"
        let effects = [
            "AFTER INSERT ON % BEGIN SELECT RAISE(IGNORE); END",
            "BEFORE INSERT ON % WHEN NEW.\(column.quoted) IS NULL BEGIN SELECT RAISE(IGNORE); END",
            "AFTER INSERT ON % BEGIN UPDATE % SET \(change) WHERE \(key) = NEW.\(key); END",
            "AFTER UPDATE ON % BEGIN DELETE FROM % WHERE \(key) = OLD.\(key) AND \(same); END",
            "AFTER DELETE ON % BEGIN UPDATE % SET \(change); END",
        ]
        let effect = random.one(of: effects).replacing("%", with: table.quoted)
        run("CREATE TRIGGER others \(effect)")
    }

    /// Runs a script of another program. It may fail only because a constraint or capture refuses it.
    private func run(_ script: String) {
        do {
            let connection = try device.connection()
            do {
                try connection.execute(script)
                history.append(script)
                tally["done", default: 0] += 1
            } catch {
                history.append(script + "\n-- failed: \(error.message)")
                let isJudged = error.isConstraint || error.code == 20
                #expect(isJudged || error.message.hasPrefix("martlet:"), "\(story)")
                tally["failed", default: 0] += 1
                if random.chance(50) { try? connection.execute("COMMIT") }
                // It fails if nothing is open any more.
                try? connection.execute("ROLLBACK")
            }
        } catch {
            Issue.record("\(error) \(story)")
        }
    }

    private func transaction() -> String {
        let foreignKeys = random.chance(70)
        if !foreignKeys { isLoose = true }
        return statements.transaction(foreignKeys: foreignKeys)
    }

    private func step() throws {
        run(transaction())
        if random.chance(30) { try device.write { _ in } }
    }

    /// Another program renames a table away and back, and writes all the time; a command may look meanwhile.
    private func renameAndBack() throws {
        let table = random.one(of: schema.tables)
        run("ALTER TABLE \(table.quoted) RENAME TO elsewhere")
        let looks = random.chance(60)
        if random.chance(50) { run(transaction().replacing(table.quoted, with: "elsewhere")) }
        if looks {
            try device.store.endLeases()
            _ = try DeviceStore(
                path: "device.sqlite", script: nil, vfs: device.disk.vfsName,
                randomBits: { [device] in device.bits() })
            history.append("-- looked")
        }
        if random.chance(50) { run(transaction().replacing(table.quoted, with: "elsewhere")) }
        run("ALTER TABLE elsewhere RENAME TO \(table.quoted)")
        if random.chance(70) { run(transaction()) }
        device.close()
        try device.open(script: schema.script)
    }

    private func exchange() throws {
        let before = try rows(device.connection())
        let known = try rows(world.server.connection())
        try device.store.endLeases()
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty, "\(story)")
        let after = try rows(device.connection())
        let served = try rows(world.server.connection())
        let parked = try device.store.parked()
        let withheld = try device.store.withheld()
        let unfit = parked.filter {
            $0.message.contains("CHECK") || $0.message.contains("expected")
        }
        #expect(unfit.isEmpty, "both sides have the same rules: \(unfit.map(\.message)) \(story)")
        if parked.isEmpty, withheld.isEmpty, try device.store.quarantined().isEmpty {
            #expect(after == served, "device and server differ: \(story)")
            if !isLoose {
                let lost = Set(described(before, known)).symmetricDifference(
                    described(after, known))
                #expect(lost.isEmpty, "the exchange changed \(lost): \(story)")
            }
            tally["exchanged", default: 0] += 1
        }
        for set in parked { try device.store.drop(set.identifier, now: 1_000) }
        for record in withheld { try device.store.drop(record) }
        #expect(try device.store.contradiction() == nil, "\(story)")
        let settled = try rows(device.connection())
        if try device.store.quarantined().isEmpty {
            #expect(settled == served, "differs once all is settled: \(story)")
        }
        history.append("-- exchanged")
        isLoose = false
    }

    /// The rows of each table by their keys, as SQL writes the values.
    private func rows(_ connection: Connection) throws -> Rows {
        var rows: Rows = [:]
        for table in schema.tables {
            let values = ([table.quotedKey] + table.columns.map(\.quoted)).map { "quote(\($0))" }
            let select = "SELECT \(values.joined(separator: ", ")) FROM \(table.quoted)"
            let found = try connection.prepare(select).rows { (row) throws(SQLiteError) in
                values.indices.map { row.text(Int32($0)) }
            }
            rows[table.name] = Dictionary(
                uniqueKeysWithValues: found.map { ($0[0], Array($0.dropFirst())) })
        }
        return rows
    }

    /// The rows without the keys that an exchange may change; references to such rows are described
    /// by what these hold.
    private func described(_ rows: Rows, _ known: Rows) -> [String] {
        func name(_ key: String, of table: RandomTable, depth: Int) -> String {
            if table.isText || known[table.name]?[key] != nil || key == "NULL" { return key }
            guard let row = rows[table.name]?[key] else { return "nothing" }
            if depth > 2 { return "…" }
            let values = zip(table.columns, row).map { column, value in
                guard let target = column.target else { return value }
                return name(value, of: schema.tables[target], depth: depth + 1)
            }
            return "(\(values.joined(separator: ",")))"
        }
        return schema.tables.flatMap { table in
            (rows[table.name] ?? [:]).map { key, row in
                let values = zip(table.columns, row).map { column, value in
                    column.target.map { name(value, of: schema.tables[$0], depth: 1) } ?? value
                }
                return
                    "\(table.name) \(name(key, of: table, depth: 1)): \(values.joined(separator: ","))"
            }
        }.sorted()
    }
}

@Suite("What other programs write at random to random tables")
struct OtherProgramsAtRandomTests {
    @Test("reaches the server, or is told", arguments: UInt64(0)..<4)
    func reaches(part: UInt64) throws {
        var tally: [String: Int] = [:]
        for seed in (part * 80)..<(part * 80 + 80) {
            let world = try WrittenWorld(seed: seed)
            try world.run(steps: 12)
            tally.merge(world.tally, uniquingKeysWith: +)
        }
        // Most of what is written is taken, and most exchanges leave nothing aside.
        #expect(tally["done", default: 0] > 2 * tally["failed", default: 0])
        #expect(tally["exchanged", default: 0] > 300)
    }
}
