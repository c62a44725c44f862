import MartletServerCore
import MartletStore
import MartletTesting
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Another program takes a table or a column away in the middle of an exchange, and has triggers on the tables.
extension WrittenWorld {
    /// A table or a column that gets another name for a while.
    private struct Away {
        let table: RandomTable
        /// Nil if it is the table.
        let column: String?
        /// Whether other names of the schema are the same, so that statements cannot be rewritten.
        let isShared: Bool
        var isNow = false

        private var name: String { column ?? table.quoted }

        var turn: String {
            let what =
                column == nil && isNow ? "elsewhere" : table.quoted
            let change =
                column == nil ? "RENAME" : "RENAME COLUMN \(isNow ? "elsewhere" : name)"
            return "ALTER TABLE \(what) \(change) TO \(isNow ? name : "elsewhere")"
        }

        /// A script that names what is away as it is called now; nil if that cannot be told.
        func named(_ script: String) -> String? {
            guard isNow else { return script }
            return isShared ? nil : script.replacing(name, with: "elsewhere")
        }
    }

    private func chooseAway() -> Away {
        let table = random.one(of: schema.tables)
        let column = random.chance(50) ? nil : random.one(of: table.columns).quoted
        let names = schema.tables.flatMap { $0.columns.map(\.quoted) + [$0.quoted, $0.quotedKey] }
        let isShared = names.count { $0 == column ?? table.quoted } > 1
        return Away(table: table, column: column, isShared: isShared)
    }

    private func turn(_ away: inout Away, on other: SmallDevice? = nil) {
        run(away.turn, on: other)
        away.isNow.toggle()
        if random.chance(50), let script = away.named(transaction()) { run(script, on: other) }
    }

    /// Another program takes something away while an answer is on its way, and maybe brings it back before the
    /// answer is there.
    func renameWhileAnswered() throws {
        var away = chooseAway()
        if random.chance(70) { run(transaction()) }
        if random.chance(40) { try work(of: colleague) }
        isLoose = true
        device.whileAnswered = { [unowned self] in
            for _ in 0..<2 where random.chance(60) { turn(&away) }
        }
        try device.store.endLeases()
        try watched(device, isLost: true) { try device.sync(with: world.server) }
        device.whileAnswered = {}
        history.append("-- exchanged")
        // The device is refused until it opens the file again.
        let isRefused = device.errors.allSatisfy { error in
            [.storage, .file].contains(error.kind)
                || error.kind == .violation && script != schema.script
        }
        #expect(isRefused, "\(device.errors) \(story)")
        if away.isNow {
            try look()
            if random.chance(50) { try exchangeAway(away.column == nil ? away.table : nil) }
            turn(&away)
        }
        device.close()
        try open(script)
        isLoose = true
        try tryAgain()
    }

    /// A new device begins with a snapshot in parts, and between these another program takes something away there,
    /// and brings it back.
    func beginInParts() throws {
        let newcomer = try world.device(script: schema.script)
        newcomer.close()
        let first = random.one(of: schema.tables).name
        newcomer.snapshot = try world.server.snapshot(
            SeedingPlan(classes: [.init(name: "first", types: [first: .all])]))
        if random.chance(70) { newcomer.heldBack = ["rest"] }
        try newcomer.open(script: schema.script)
        var away = chooseAway()
        newcomer.whileAnswered = { [unowned self] in
            if random.chance(20) { turn(&away, on: newcomer) }
        }
        newcomer.beforePart = { [unowned self] _ in
            if random.chance(30) { turn(&away, on: newcomer) }
        }
        newcomer.afterPart = { [unowned self] in
            if random.chance(20) { turn(&away, on: newcomer) }
        }
        for _ in 0..<5 {
            try newcomer.store.endLeases()
            try watched(newcomer, isLost: true) { try newcomer.sync(with: world.server) }
            history.append("-- the newcomer exchanged: \(newcomer.parts)")
            // A column under another name has its default in many rows, and may be unique.
            let isRefused = newcomer.errors.allSatisfy { error in
                [.storage, .file].contains(error.kind)
                    || error.kind == .violation && away.column != nil
            }
            #expect(isRefused, "\(newcomer.errors) \(story)")
            if !newcomer.errors.isEmpty || random.chance(30) {
                newcomer.close()
                try opening(newcomer) { try newcomer.open(script: nil) }
            }
            if random.chance(30) { turn(&away, on: newcomer) }
            if random.chance(30) { try work(of: colleague) }
            if random.chance(50) { newcomer.heldBack = [] }
        }
        newcomer.whileAnswered = {}
        newcomer.beforePart = { _ in }
        newcomer.afterPart = {}
        newcomer.heldBack = []
        if away.isNow { turn(&away, on: newcomer) }
        newcomer.close()
        try opening(newcomer) { try newcomer.open(script: schema.script) }
        for _ in 0..<3 {
            try work(of: newcomer, writes: false)
            #expect(try newcomer.store.retryQuarantined(now: 1_000) == 0, "\(story)")
        }
        #expect(newcomer.errors.isEmpty, "\(newcomer.errors) \(story)")
        #expect(try newcomer.store.pendingSnapshot == nil, "\(story)")
        #expect(try newcomer.store.contradiction() == nil, "\(story)")
        #expect(
            try rows(newcomer.connection()) == rows(world.server.connection()),
            "a newcomer has something else: \(story)")
        tally["newcomers", default: 0] += 1
    }

    // MARK: - Triggers

    /// Another program gives the device a trigger, another one, or takes it away.
    func changeTriggers() throws {
        run("DROP TRIGGER IF EXISTS others")
        if !isTriggered || random.chance(70) { addTrigger() }
        isTriggered = true
    }

    /// Triggers of another program's, on the device alone, which SQLite runs before those of capture: they ignore
    /// writes, refuse them, replace what was written, or write more.
    private func addTrigger() {
        let table = random.one(of: schema.tables)
        let column = random.one(of: table.columns)
        func value() -> String {
            column.target == nil ? column.kind.literal(using: &random, odd: 0) : "NULL"
        }
        let (key, name) = (table.quotedKey, column.quoted)
        let (change, same) = ("\(name) = \(value())", "\(name) IS \(value())")
        let effects = [
            "AFTER INSERT ON % BEGIN SELECT RAISE(IGNORE); END",
            "BEFORE INSERT ON % WHEN NEW.\(name) IS NULL BEGIN SELECT RAISE(IGNORE); END",
            "BEFORE INSERT ON % WHEN NEW.\(same) BEGIN SELECT RAISE(ABORT, 'not so'); END",
            "AFTER INSERT ON % BEGIN UPDATE % SET \(change) WHERE \(key) = NEW.\(key); END",
            "BEFORE UPDATE ON % WHEN NEW.\(same) BEGIN SELECT RAISE(IGNORE); END",
            "BEFORE UPDATE OF \(name) ON % WHEN OLD.\(same) BEGIN SELECT RAISE(FAIL, 'not so'); END",
            "AFTER UPDATE ON % WHEN NEW.\(same) BEGIN REPLACE INTO %(\(key)) VALUES (NEW.\(key)); END",
            "AFTER UPDATE ON % BEGIN DELETE FROM % WHERE \(key) = OLD.\(key) AND \(same); END",
            "BEFORE DELETE ON % WHEN OLD.\(same) BEGIN SELECT RAISE(IGNORE); END",
            "AFTER DELETE ON % BEGIN UPDATE % SET \(change); END",
        ]
        let effect = random.one(of: effects).replacing("%", with: table.quoted)
        run("CREATE TRIGGER others \(effect)")
    }
}
