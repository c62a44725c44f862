import MartletProtocol
import MartletStore
import MartletTesting
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
    /// Somebody else, whose file other programs write to as well.
    private let colleague: SmallDevice
    private var statements: RandomStatements
    private var random: SeededRandom
    private var history: [String] = []
    private let seed: UInt64
    /// Whether another program has a trigger on the device.
    private var isTriggered = false
    /// Whether something was done since the last exchange that a server may judge otherwise.
    private var isLoose = false
    private(set) var tally: [String: Int] = [:]

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededRandom(seed: seed &* 0x1234_5678_9abc_def1)
        schema = RandomSchema(using: &random)
        statements = RandomStatements(schema, seed: seed)
        world = try SmallWorld("written-\(seed)", script: schema.script)
        device = try world.device(script: schema.script)
        colleague = try world.device(script: schema.script)
    }

    func run(steps: Int) throws {
        isTriggered = random.chance(40)
        if isTriggered { addTriggers() }
        for _ in 0..<steps {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<10: try renameAndBack()
            case 10..<20: try renameColumnAndBack()
            case 20..<25: try swapColumnsAndBack()
            case 25..<35: try work(of: colleague)
            default: try step()
            }
            if random.chance(40) { try exchange() }
        }
        try exchange()
        try work(of: colleague, writes: false)
        #expect(
            try rows(colleague.connection()) == rows(world.server.connection()),
            "a colleague has something else: \(story)")
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
    private func run(_ script: String, on other: SmallDevice? = nil) {
        do {
            let connection = try (other ?? device).connection()
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

    /// A program writes to the file of somebody else, who exchanges then.
    private func work(of colleague: SmallDevice, writes: Bool = true) throws {
        if writes {
            run(transaction(), on: colleague)
            history.append("-- the last one by a colleague")
        }
        try colleague.store.endLeases()
        try colleague.sync(with: world.server)
        for set in try colleague.store.parked() {
            try colleague.store.drop(set.identifier, now: 1_000)
        }
        for record in try colleague.store.withheld() { try colleague.store.drop(record) }
        // Two may have written the same record.
        isLoose = true
    }

    /// A command looks at the file.
    private func look() throws {
        device.close()
        try device.open(script: nil)
        try device.store.endLeases()
        history.append("-- looked")
    }

    /// Another program renames a table away and back, and writes all the time; a command may look meanwhile.
    private func renameAndBack() throws {
        let table = random.one(of: schema.tables)
        run("ALTER TABLE \(table.quoted) RENAME TO elsewhere")
        let looks = random.chance(60)
        if random.chance(50) { run(transaction().replacing(table.quoted, with: "elsewhere")) }
        if looks { try look() }
        if random.chance(50) { run(transaction().replacing(table.quoted, with: "elsewhere")) }
        run("ALTER TABLE elsewhere RENAME TO \(table.quoted)")
        if random.chance(70) { run(transaction()) }
        device.close()
        try device.open(script: schema.script)
    }

    /// Another program renames a column away and back; the device may exchange meanwhile.
    private func renameColumnAndBack() throws {
        let table = random.one(of: schema.tables)
        let column = random.one(of: table.columns).quoted
        // Only a name that stands for nothing else can be replaced in all statements.
        let names = schema.tables.flatMap { $0.columns.map(\.quoted) + [$0.quoted, $0.quotedKey] }
        let isOnly = names.count { $0 == column } == 1
        var now = column
        func write(_ percent: Int) {
            guard random.chance(percent), isOnly || now == column else { return }
            run(transaction().replacing(column, with: now))
        }
        for name in ["elsewhere", "nowhere"].prefix(random.chance(70) ? 1 : 2) {
            run("ALTER TABLE \(table.quoted) RENAME COLUMN \(now) TO \(name)")
            now = name
            write(50)
            guard random.chance(60) else { continue }
            try look()
            write(30)
            guard random.chance(60) else { continue }
            try work(of: colleague)
            // A record that does not fit without the column's value is fetched once more, and quarantined.
            for _ in 0..<3 where try device.sync(with: world.server) > 0 && device.errors.isEmpty {
                break
            }
            #expect(device.errors.isEmpty, "\(story)")
            history.append("-- exchanged")
        }
        run("ALTER TABLE \(table.quoted) RENAME COLUMN \(now) TO \(column)")
        now = column
        write(50)
        device.close()
        try device.open(script: schema.script)
        // Nothing of this is new to the server, but the names between are not known there.
        isLoose = true
        for set in try device.store.parked() where random.chance(50) {
            _ = try? device.store.retry(set.identifier, now: 1_000)
        }
    }

    /// Another program swaps the names of two columns, and swaps them back.
    private func swapColumnsAndBack() throws {
        let table = random.one(of: schema.tables)
        guard table.columns.count > 1 else { return }
        let pair = table.columns.shuffled(using: &random).prefix(2).map(\.quoted)
        let steps = [(pair[0], "elsewhere"), (pair[1], pair[0]), ("elsewhere", pair[1])]
        func rename(_ steps: [(String, String)]) {
            for (name, new) in steps {
                run("ALTER TABLE \(table.quoted) RENAME COLUMN \(name) TO \(new)")
            }
        }
        rename(steps)
        if random.chance(50) { run(transaction()) }
        device.close()
        let error = #expect(throws: StoreError.self, "\(story)") { try device.open(script: nil) }
        #expect(error?.kind == .schema, "\(story)")
        rename(steps.reversed().map { ($1, $0) })
        // A statement may have given one column a value that the other one refuses.
        isLoose = true
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
        for set in parked { try giveUp { try device.store.drop(set.identifier, now: 1_000) } }
        for record in withheld { try giveUp { try device.store.drop(record) } }
        #expect(try device.store.contradiction() == nil, "\(story)")
        let settled = try rows(device.connection())
        if try device.store.quarantined().isEmpty, try device.store.withheld().isEmpty,
            try device.store.parkedCount == 0
        {
            #expect(settled == served, "differs once all is settled: \(story)")
        }
        history.append("-- exchanged")
        isLoose = false
    }

    /// Gives up an edit of the device's. A trigger of another program's may forbid it.
    private func giveUp(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as SQLiteError where error.isConstraint && isTriggered {
            tally["kept", default: 0] += 1
        }
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
