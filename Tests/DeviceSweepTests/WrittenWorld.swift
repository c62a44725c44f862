import MartletModel
import MartletProtocol
import MartletStore
import MartletTesting
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tables that chance declares, on a device and a server, and another program that writes to the
/// device's file whatever SQLite takes.
final class WrittenWorld {
    typealias Rows = [String: [String: [String]]]

    let schema: RandomSchema
    /// The tables as the device declares them: one may refuse what others write.
    let script: String
    /// The constraint of the device's that the server does not have, if it is part of a table.
    private let narrowing: String?
    let world: SmallWorld
    let device: SmallDevice
    /// Somebody else, whose file other programs write to as well.
    let colleague: SmallDevice
    var statements: RandomStatements
    var random: SeededRandom
    var history: [String] = []
    let seed: UInt64
    /// Whether another program has a trigger on the device.
    var isTriggered = false
    /// Whether something was done since the last exchange that a server may judge otherwise.
    var isLoose = false
    /// Whether anybody else wrote since the last exchange.
    var isDisturbed = false
    /// Whether rows were changed in a way that nothing can notice but a check.
    var isTampered = false
    /// Whether another program has added a column.
    var hasMore = false
    var tally: [String: Int] = [:]
    /// What each device has shown.
    private var witnesses: [ObjectIdentifier: Witness] = [:]
    /// The types of records that were withheld when the last exchange ended.
    private var stillWithheld: [String] = []

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededRandom(seed: seed &* 0x1234_5678_9abc_def1)
        schema = RandomSchema(using: &random, rare: true)
        statements = RandomStatements(schema, seed: seed, odd: random.one(of: [3, 3, 3, 20]))
        var pace = SmallPace()
        // Differences end within a revision of a few rows.
        if seed.isMultiple(of: 2) { pace.partBytes = 600 }
        world = try SmallWorld("written-\(seed)", script: schema.script, pace: pace)
        (script, narrowing) =
            random.chance(30) ? Self.narrow(schema, &random) : (schema.script, nil)
        device = try world.device(script: script)
        colleague = try world.device(script: schema.script)
    }

    /// The declarations, with a unique index or a constraint that the server does not have.
    private static func narrow(
        _ schema: RandomSchema, _ random: inout SeededRandom
    ) -> (script: String, constraint: String?) {
        let narrowed = random.one(of: schema.tables)
        let column = random.one(of: narrowed.columns)
        if random.chance(50) {
            let index = "CREATE UNIQUE INDEX narrow ON \(narrowed.quoted)(\(column.quoted));"
            return (schema.script + " " + index, nil)
        }
        let value = column.target == nil ? column.kind.literal(using: &random, odd: 0) : "7"
        let check = "CHECK (\(column.quoted) IS NOT \(value))"
        let tables = schema.tables.map { table in
            table.script(with: table.name == narrowed.name ? [check] : [])
        }
        return (tables.joined(separator: "\n"), ", " + check)
    }

    /// Takes away what is narrower on the device than on the server.
    private func widen() throws {
        run("DROP INDEX IF EXISTS narrow")
        guard let narrowing else { return }
        let connection = try device.connection()
        try connection.execute("PRAGMA writable_schema = ON")
        let change = try connection.prepare("UPDATE sqlite_schema SET sql = replace(sql, ?1, '')")
        change.bind(1, text: narrowing)
        try change.run()
        try connection.execute("PRAGMA writable_schema = RESET")
    }

    func run(steps: Int) throws {
        if random.chance(40) { try changeTriggers() }
        for _ in 0..<steps {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<10: try renameAndBack()
            case 10..<20: try renameColumnAndBack()
            case 20..<25: try swapColumnsAndBack()
            case 25..<28: try swapTablesAndBack()
            case 28..<38: try work(of: colleague)
            case 38..<48: try save()
            case 48..<53: try takeOutAndPutBack()
            case 53..<58: try withholdAndMend()
            case 58..<63: try writeEdge()
            case 63..<67: try handOnHidden()
            case 67..<73: try renameWhileAnswered()
            case 73..<78: try changeTriggers()
            default: try step()
            }
            if random.chance(40) { try exchange(settles: false) }
        }
        try exchange()
        if seed % 20 == 7, !isTriggered { try writeMany() }
        if seed % 32 == 3, !isTriggered { try writeBulk() }
        if seed % 16 == 5, !isTriggered { try writeLong() }
        if seed % 16 == 11, !isTriggered { try handOnMany() }
        if random.chance(40) { try beginInParts() }
        if random.chance(30) { try addColumn() }
        try end()
    }

    /// What every world comes to: the tables are as the server's, all have the same, and a check finds
    /// nothing that was not done on purpose.
    private func end() throws {
        if isTriggered { run("DROP TRIGGER IF EXISTS others") }
        isTriggered = false
        device.close()
        try widen()
        try open(schema.script)
        try exchange()
        #expect(try device.store.retryQuarantined(now: 1_000) == 0, "\(story)")
        try exchange()
        let integrity = try device.connection().text("PRAGMA integrity_check")
        #expect(integrity == "ok", "\(story)")
        if random.chance(30), !hasMore { try dropTable() }
        if random.chance(30) { try writeUncaptured() }
        try check()
        try work(of: colleague, writes: false)
        #expect(
            try rows(colleague.connection()) == rows(world.server.connection()),
            "a colleague has something else: \(story)")
    }

    /// A check compares all rows, and puts right what it finds.
    private func check() throws {
        var run = CheckRun(repairing: .revert, batchRecords: 100)
        while let body = try run.request(device.store, now: 1_000) {
            let answer = try world.server.answer(body)
            try run.take(answer.body, device.store, now: 1_000)
        }
        let findings = run.report.findings.map { "\($0.type) \($0.id) \($0.reason)" }
        #expect(findings.isEmpty || isTampered, "a check found \(findings): \(story)")
        try exchange()
        #expect(
            try rows(device.connection()) == rows(world.server.connection()),
            "a check leaves something else: \(story)")
    }

    /// Switches the device on.
    /// - Parameter script: Its tables; nil to take those of the file. A column that another program added is in no
    ///   script.
    func open(_ script: String?) throws {
        try opening(device) { try device.open(script: hasMore ? nil : script) }
    }

    /// Opens a device, which may bring in what the server sent while something was away.
    func opening(_ device: SmallDevice, _ open: () throws -> Void) throws {
        let before = try Witness.visible(schema, device.connection())
        try open()
        try witness(of: device).cameIn(before, Witness.visible(schema, device.connection()))
    }

    /// How much of its history a world tells.
    var tells = 12

    var story: String {
        "seed \(seed)\n\(schema.script)\n" + history.suffix(tells).joined(separator: "\n--\n")
    }

    /// Runs a script of another program. It may fail only because a constraint or capture refuses it.
    func run(_ script: String, on other: SmallDevice? = nil) {
        do {
            let connection = try (other ?? device).connection()
            let witness = witness(of: other ?? device)
            func see() { witness.see(Witness.visible(schema, connection)) }
            see()
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
            see()
            // A table may be away.
            if tells == .max, let now = try? rows(device.connection()) {
                history.append("-- has \(now)")
            }
        } catch {
            Issue.record("\(error) \(story)")
        }
    }

    func transaction() -> String {
        let foreignKeys = random.chance(70)
        if !foreignKeys { isLoose = true }
        return statements.transaction(foreignKeys: foreignKeys, rotates: true)
    }

    func step() throws {
        run(transaction())
        if random.chance(30) { try device.write { _ in } }
    }

    /// The app saves: new records by its calls and by SQL, and statements of any kind.
    private func save() throws {
        let table = random.one(of: schema.tables)
        let isNewOnly = !table.isText && random.chance(50)
        do {
            try device.write { context in
                // A table that was away may show now what came meanwhile.
                witness(of: device).see(try Witness.visible(schema, context))
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    if random.chance(40) {
                        let columns = table.columns.filter { $0.isRequired && $0.kind == .text }
                        let texts = columns.map {
                            ($0.name, SQLValue.text("app\(seed)-\($0.name)"))
                        }
                        _ = try context.insert(
                            table.name, RecordValues(names: texts.map(\.0), values: texts.map(\.1)))
                        history.append("-- the app inserts into \(table.name)")
                        continue
                    }
                    let sql = isNewOnly ? statements.newRecord(table) : statements.ofSave()
                    history.append("-- the app: " + sql)
                    _ = try context.rows(sql)
                }
            }
            tally["saved", default: 0] += 1
        } catch let error as StoreError {
            history.append("-- refused: \(error.message)")
            let kinds: [StoreError.Kind] = [.constraint, .value, .vetoed]
            #expect(kinds.contains(error.kind), "\(error) \(story)")
            let isOfKey = error.message.contains("\(table.name).\(table.key)")
            #expect(!isNewOnly || !isOfKey, "an id was given twice: \(error.message) \(story)")
        } catch let error as SQLiteError {
            history.append("-- refused: \(error.message)")
            #expect(error.isConstraint, "\(error) \(story)")
        }
    }

    /// A program writes to the file of somebody else, who exchanges then.
    func work(of colleague: SmallDevice, writes: Bool = true) throws {
        if writes {
            run(transaction(), on: colleague)
            history.append("-- the last one by a colleague")
        }
        try colleague.store.endLeases()
        try watched(colleague) { try colleague.sync(with: world.server) }
        for set in try colleague.store.parked() {
            try colleague.store.drop(set.identifier, now: 1_000)
        }
        // Records that refer to others go first.
        for record in try colleague.store.withheld().reversed() {
            try giveUp(mayBeNeeded: true) { try colleague.store.drop(record) }
        }
        try converge(colleague)
        // Two may have written the same record.
        isLoose = true
        if writes { isDisturbed = true }
    }

    /// A command looks at the file.
    func look() throws {
        device.close()
        try opening(device) { try device.open(script: nil) }
        try device.store.endLeases()
        history.append("-- looked")
    }

    /// - Parameter settles: Whether all that is withheld is given up; else some of it stays.
    func exchange(settles: Bool = true) throws {
        if random.chance(15) { try exchangeInVain() }
        let before = try rows(device.connection())
        let known = try rows(world.server.connection())
        // The device does not show these, and they may be in the way of what is saved.
        var hidden = Set(try device.store.quarantined().map(\.type))
        try sync()
        let after = try rows(device.connection())
        let served = try rows(world.server.connection())
        let parked = try device.store.parked()
        let withheld = try device.store.withheld()
        // A reference that only the device forbids may get its value with a permanent id.
        let isOfID = narrowing?.hasSuffix(" IS NOT 7)") == true
        let unfit = parked.filter {
            $0.message.contains("CHECK") && !isOfID || $0.message.contains("expected")
        }
        let isAlone = !isDisturbed && !isLoose && !isTriggered
        let refused = parked.map { "\($0.reason) \($0.message)" }
        // Of these the server has what was there before, or what others wrote meanwhile.
        hidden.formUnion(withheld.map(\.type) + stillWithheld)
        let isInTheWay = hidden.contains { type in refused.contains { $0.contains(type) } }
        // schema.md: what such an index forbids to move needs two saves.
        let isOfIndex =
            refused.contains { $0.contains("failed: index") } || schema.script.contains(" WHERE ")
        #expect(
            !isAlone || isOfIndex || isOfID || isInTheWay || refused.isEmpty,
            "nobody else wrote, and yet: \(refused), \(hidden) \(story)")
        #expect(unfit.isEmpty, "both sides have the same rules: \(unfit.map(\.message)) \(story)")
        if parked.isEmpty, withheld.isEmpty, try device.store.quarantined().isEmpty {
            #expect(after == served, "device and server differ: \(story)")
            if !isLoose {
                let lost = Set(described(before, known)).symmetricDifference(
                    described(after, known))
                #expect(lost.isEmpty, "the exchange changed \(lost) of \(before): \(story)")
            }
            tally["exchanged", default: 0] += 1
        }
        if !withheld.isEmpty {
            history.append("-- withheld: \(withheld.map { "\($0.type) \($0.id) \($0.message)" })")
        }
        if !parked.isEmpty { history.append("-- refused: \(refused)") }
        for set in parked { try giveUp { try device.store.drop(set.identifier, now: 1_000) } }
        for record in withheld where settles || random.chance(50) {
            try giveUp(mayBeNeeded: true) { try device.store.drop(record) }
        }
        #expect(try device.store.contradiction() == nil, "\(story)")
        let settled = try rows(device.connection())
        if try device.store.quarantined().isEmpty, try device.store.withheld().isEmpty,
            try device.store.parkedCount == 0
        {
            #expect(settled == served, "differs once all is settled: \(story)")
        }
        try converge(device)
        stillWithheld = try device.store.withheld().map(\.type)
        history.append("-- exchanged")
        isLoose = false
        isDisturbed = false
    }

    /// Exchanges. A record that does not fit the device's tables is fetched once more, and quarantined.
    func sync() throws {
        try device.store.endLeases()
        try watched(device) {
            for _ in 0..<3 {
                try device.sync(with: world.server)
                if device.errors.isEmpty { break }
                tally["fetched once more", default: 0] += 1
            }
        }
        #expect(device.errors.isEmpty, "\(story)")
    }

    /// Has a person look at all that the device shows.
    func seeAll() throws {
        try witness(of: device).see(Witness.visible(schema, device.connection()))
    }

    private func witness(of device: SmallDevice) -> Witness {
        let number = ObjectIdentifier(device)
        let witness = witnesses[number] ?? Witness(schema)
        witnesses[number] = witness
        return witness
    }

    private func converge(_ device: SmallDevice) throws {
        try witness(of: device).converge(
            Witness.visible(schema, device.connection()), rows(world.server.connection()),
            withheld: device.store.withheld())
    }

    /// An exchange of a device, which may change for others what the device has shown, and nothing else.
    func watched(
        _ device: SmallDevice, isLost: Bool = false, _ exchange: () throws -> Void
    ) throws {
        let witness = witness(of: device)
        let before = try Witness.visible(schema, device.connection())
        witness.see(before)
        let known = try rows(world.server.connection())
        try exchange()
        let after = try Witness.visible(schema, device.connection())
        let served = try rows(world.server.connection())
        let unseen = witness.unseen(known, served)
        #expect(unseen.isEmpty, "nobody saw what was overwritten: \(unseen) \(story)")
        let store = try device.store
        if !isLost, try store.parkedCount == 0, try store.withheldCount == 0,
            try store.quarantined().isEmpty
        {
            let missing = witness.missing(before, after)
            #expect(missing.isEmpty, "saved and not there: \(missing) \(story)")
        }
        try converge(device)
    }

    /// An exchange whose answer is lost, and writes after it.
    private func exchangeInVain() throws {
        try device.store.endLeases()
        try watched(device, isLost: true) {
            try device.sync(with: world.server, lost: Int.random(in: 1...2, using: &random))
        }
        history.append("-- exchanged, an answer was lost")
        isLoose = true
        if random.chance(60) { run(transaction()) }
    }

    /// Gives up an edit of the device's. A trigger of another program's may forbid it.
    /// - Parameter mayBeNeeded: Whether it may also be refused because other records refer to the edited one, or have
    ///   taken a unique value that it had before.
    func giveUp(mayBeNeeded: Bool = false, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as SQLiteError
            where mayBeNeeded
            && (error.isForeignKeyViolation || error.isUniqueViolation
                || error.message.contains("take the unique value from the other row first"))
            || error.isConstraint && isTriggered
        {
            tally["kept", default: 0] += 1
        }
    }

    /// The rows of each table by their keys, as SQL writes the values.
    func rows(_ connection: Connection) throws -> Rows {
        var rows: Rows = [:]
        for table in schema.tables { rows[table.name] = try Witness.read(table, connection) }
        return rows
    }

    /// The rows without the keys that an exchange may change; references to such rows are described
    /// by what these hold.
    func described(_ rows: Rows, _ known: Rows) -> [String] {
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
