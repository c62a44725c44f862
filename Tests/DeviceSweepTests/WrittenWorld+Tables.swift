import MartletStore
import MartletTesting
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// What another program does to the tables themselves, and undoes.
extension WrittenWorld {
    /// Another program renames a table away and back, and writes all the time; a command may look meanwhile.
    func renameAndBack() throws {
        let table = random.one(of: schema.tables)
        run("ALTER TABLE \(table.quoted) RENAME TO elsewhere")
        let looks = random.chance(60)
        if random.chance(50) { run(transaction().replacing(table.quoted, with: "elsewhere")) }
        if looks { try look() }
        if random.chance(50) { run(transaction().replacing(table.quoted, with: "elsewhere")) }
        if looks, random.chance(50) { try exchangeAway(table) }
        run("ALTER TABLE elsewhere RENAME TO \(table.quoted)")
        if random.chance(70) { run(transaction()) }
        device.close()
        try open(script)
        try tryAgain()
    }

    /// The device exchanges while another program has a table or a column away.
    /// - Parameter table: The table that is away, which programs write to.
    func exchangeAway(_ table: RandomTable? = nil) throws {
        // A name between is not known to the server, so only what has no name there is judged.
        let isAlone =
            try table != nil && !isDisturbed && !isLoose && !isTriggered
            && device.store.quarantined().isEmpty
        let before = Set(try device.store.parked().map(\.identifier))
        for _ in 0..<random.one(of: [1, 1, 2, 3]) {
            if table == nil || random.chance(40) { try work(of: colleague) }
            try sync()
            history.append("-- exchanged")
        }
        let refused = try device.store.parked().filter { !before.contains($0.identifier) }
        #expect(
            !isAlone || isDisturbed || refused.isEmpty || schema.script.contains(" WHERE "),
            "refused while a table is away: \(refused.map(\.message)) \(story)")
        // Names between are not known to the server.
        isLoose = true
        guard let table, random.chance(50) else { return }
        run(transaction().replacing(table.quoted, with: "elsewhere"))
    }

    /// A person sends some of the refused saves again, and sees before that what is there now.
    func tryAgain() throws {
        try seeAll()
        for set in try device.store.parked() where random.chance(50) {
            _ = try? device.store.retry(set.identifier, now: 1_000)
            history.append("-- sent again: \(set.message)")
        }
    }

    /// Another program renames a column away and back; the device may exchange meanwhile.
    func renameColumnAndBack() throws {
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
            // All that was written so far is sent under the names that the server knows.
            let isKnown = name == "elsewhere" && !random.chance(30)
            if !isKnown { write(100) }
            guard random.chance(60) else { continue }
            let before = Set(try device.store.parked().map(\.identifier))
            try exchangeAway()
            let unknown = try device.store.parked().filter {
                !before.contains($0.identifier) && $0.message.contains(name)
            }
            #expect(!isKnown || unknown.isEmpty, "\(unknown.map(\.message)) \(story)")
        }
        run("ALTER TABLE \(table.quoted) RENAME COLUMN \(now) TO \(column)")
        now = column
        write(50)
        device.close()
        try open(script)
        // Nothing of this is new to the server, but the names between are not known there.
        isLoose = true
        try tryAgain()
    }

    /// Another program adds a column while edits wait. The server does not know it, and needs not: no statement gives
    /// it a value.
    func addColumn() throws {
        let table = random.one(of: schema.tables)
        let type = random.one(of: [
            "TEXT", "TEXT DEFAULT 'red'", "INTEGER NOT NULL DEFAULT 7", "REAL DEFAULT 0.5",
        ])
        for _ in 0..<Int.random(in: 0...2, using: &random) { try step() }
        run("ALTER TABLE \(table.quoted) ADD COLUMN added \(type)")
        hasMore = true
        for _ in 0..<Int.random(in: 0...2, using: &random) { run(transaction()) }
        for _ in 0..<2 {
            try look()
            try sync()
            let unknown = try device.store.parked().map(\.message).filter { $0.contains("added") }
            #expect(unknown.isEmpty, "\(unknown) \(story)")
            for _ in 0..<Int.random(in: 1...3, using: &random) { run(transaction()) }
        }
    }

    /// Another program swaps the names of two columns, and swaps them back.
    func swapColumnsAndBack() throws {
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
        try open(script)
    }

    /// Another program swaps the names of two tables, and swaps them back.
    func swapTablesAndBack() throws {
        let pair = schema.tables.shuffled(using: &random).prefix(2).map(\.quoted)
        guard pair.count > 1 else { return }
        let steps = [(pair[0], "elsewhere"), (pair[1], pair[0]), ("elsewhere", pair[1])]
        func rename(_ steps: [(String, String)]) {
            for (name, new) in steps { run("ALTER TABLE \(name) RENAME TO \(new)") }
        }
        rename(steps)
        device.close()
        let error = #expect(throws: StoreError.self, "\(story)") { try device.open(script: nil) }
        #expect(error?.kind == .schema, "\(story)")
        rename(steps.reversed().map { ($1, $0) })
        isLoose = true
        try open(script)
    }

    // MARK: - What only a check puts right

    /// Another program drops a table and makes it again, empty. That deletes no record for others.
    func dropTable() throws {
        let table = random.one(of: schema.tables)
        let known = try rows(world.server.connection())[table.name] ?? [:]
        run("PRAGMA foreign_keys = OFF; DROP TABLE \(table.quoted); \(table.script)")
        if random.chance(50) { try look() }
        try sync()
        let served = try rows(world.server.connection())[table.name] ?? [:]
        #expect(served == known, "a dropped table deletes records for others: \(story)")
        isTampered = true
    }

    /// Another program writes past capture. Ids that it took so are not given again.
    func writeUncaptured() throws {
        let tables = schema.tables.filter { !$0.isText }
        guard !tables.isEmpty else { return }
        let table = random.one(of: tables)
        device.close()
        run(
            """
            PRAGMA foreign_keys = OFF; UPDATE martlet_control SET capture = 0;
            \(statements.newRecord(table)); UPDATE martlet_control SET capture = 0
            """)
        try open(random.chance(50) ? schema.script : nil)
        _ = try device.store.restoreCapture()
        let connection = try device.connection()
        let taken = try connection.integer(
            """
            SELECT count(*) FROM \(table.quoted)
            WHERE \(table.quotedKey) <= (SELECT id FROM martlet_new_id)
            """)
        #expect(taken == 0, "an id that a row has is given again: \(story)")
        isTampered = true
    }
}
