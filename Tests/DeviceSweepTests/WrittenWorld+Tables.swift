import MartletStore
import MartletTesting
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet

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
        try device.open(script: script)
        try tryAgain()
    }

    /// The device exchanges while another program has a table or a column away.
    /// - Parameter table: The table that is away, which programs write to.
    private func exchangeAway(_ table: RandomTable? = nil) throws {
        if table == nil || random.chance(60) { try work(of: colleague) }
        try sync()
        history.append("-- exchanged")
        // Names between are not known to the server.
        isLoose = true
        guard let table, random.chance(50) else { return }
        run(transaction().replacing(table.quoted, with: "elsewhere"))
    }

    private func tryAgain() throws {
        for set in try device.store.parked() where random.chance(50) {
            _ = try? device.store.retry(set.identifier, now: 1_000)
            isDecided = true
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
        var isExchanged = false
        for name in ["elsewhere", "nowhere"].prefix(random.chance(70) ? 1 : 2) {
            run("ALTER TABLE \(table.quoted) RENAME COLUMN \(now) TO \(name)")
            now = name
            write(50)
            guard random.chance(60) else { continue }
            try look()
            write(30)
            guard random.chance(60) else { continue }
            try exchangeAway()
            isExchanged = true
        }
        run("ALTER TABLE \(table.quoted) RENAME COLUMN \(now) TO \(column)")
        now = column
        // What the server sent meanwhile is shown once the device has looked.
        if !isExchanged { write(50) }
        device.close()
        try device.open(script: script)
        if isExchanged { write(50) }
        // Nothing of this is new to the server, but the names between are not known there.
        isLoose = true
        try tryAgain()
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
        try device.open(script: script)
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
        try device.open(script: script)
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
        try device.open(script: random.chance(50) ? schema.script : nil)
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
