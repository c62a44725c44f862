import MartletModel
internal import MartletProtocol
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("What a version of a device's file must not do")
struct SyncedRefusalTests {
    private let file: SyncedFile

    init() throws {
        file = try SyncedFile("refusals")
    }

    /// Runs one version on top of those given, and gives its refusal; nothing may have changed.
    private func refusal(
        after count: Int = SyncedVersions.all.count,
        _ body: @escaping @Sendable (MigrationContext) throws -> Void
    ) throws -> StoreError? {
        let file = try SyncedFile("refusal")
        try file.open(count)
        file.close()
        let before = try file.content()
        let list = SyncedVersions.all[..<count] + [Migration(count + 1, "refused", body)]
        do {
            try file.open(Array(list))
            return nil
        } catch let error as StoreError {
            #expect(try file.content() == before)
            return error
        }
    }

    @Test("a table stays as long as the server knows its records or edits of them wait")
    func dropTable() throws {
        let known = try refusal { try $0.dropTable("venues") }
        #expect(known?.kind == .schema)
        #expect(known?.message.contains("holds records the server knows") == true)
        let edited = try refusal { try $0.dropTable("notes") }
        #expect(edited?.kind == .schema)
        #expect(edited?.message.contains("edits the server has not confirmed") == true)
        let referenced = try refusal { try $0.dropTable("teams") }
        #expect(referenced?.message.contains("references it") == true)
    }

    @Test("a table that nobody has used goes, and may come again")
    func unusedTable() throws {
        try file.open(
            SyncedVersions.all[..<1] + [
                Migration(2, "a") { try $0.create("CREATE TABLE halls(id TEXT PRIMARY KEY)") },
                Migration(3, "b") { try $0.dropTable("halls") },
                Migration(4, "c") { context in
                    try context.create("CREATE TABLE halls(id INTEGER PRIMARY KEY, name TEXT)")
                },
            ])
        try file.write { try $0.insert("halls", ["name": "A"]) }
        let store = try file.opened()
        #expect(store.local.schema["halls"]?.keyKind == .integer)
        #expect(try file.opened().contradiction() == nil)
    }

    @Test("a record that was kept aside and does not fit its new table stops the version")
    func misfitRecord() throws {
        let error = try refusal(after: 4) { context in
            try context.create(
                "CREATE TABLE venues(id INTEGER PRIMARY KEY, name TEXT, seats INTEGER NOT NULL)")
        }
        #expect(error?.kind == .constraint)
        #expect(error?.table == "venues" && error?.key == .integer(32))
        #expect(error?.message.contains("as wide as the server's") == true)
    }

    @Test("a value that was kept aside and does not fit its new column stops the version")
    func misfitValue() throws {
        let error = try refusal(after: 1) { context in
            try context.addColumn("nickname TEXT CHECK (length(nickname) < 2)", to: "teams")
        }
        #expect(error?.kind == .constraint)
        #expect(error?.table == "teams" && error?.key == .integer(5))
    }

    @Test("a table that cannot be kept in step is refused")
    func notSynchronisable() throws {
        let error = try refusal { try $0.create("CREATE TABLE log(line TEXT)") }
        #expect(error?.kind == .schema)
        #expect(error?.message.contains("has no primary key") == true)
        let word = try refusal { try $0.renameColumn("town", to: "revision", in: "teams") }
        #expect(word?.kind == .schema)
        #expect(word?.message.contains("word of the wire") == true)
    }

    @Test("a data statement gives no key the server would have to give")
    func keysInDataStatement() throws {
        let error = try refusal { context in
            try context.execute("INSERT INTO teams(id, name) VALUES (77, 'x')")
        }
        #expect(error?.kind == .constraint)
        #expect(error?.message.contains("martlet_new_id") == true)
    }

    @Test("a unique index that rows violate names one of them")
    func uniqueIndexInSyncedMigration() throws {
        let error = try refusal { context in
            try context.execute("UPDATE players SET shirt = 1 WHERE team_id = 5")
        }
        #expect(error?.kind == .constraint)
        let index = try refusal(after: 5) { context in
            try context.execute("UPDATE players SET shirt = 1")
            try context.create("CREATE UNIQUE INDEX by_shirt ON players(shirt)")
        }
        #expect(index?.message.contains("Unique index “by_shirt”") == true)
        #expect(index?.key == .integer(14))
    }

    @Test("edits too many for one change set stop the version")
    func tooLargeMigration() throws {
        let error = try refusal { context in
            try context.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100001)
                INSERT INTO notes SELECT 'n' || i, NULL FROM n
                """)
        }
        #expect(error?.kind == .tooLarge)
    }

    @Test("a newer app's file is refused, untouched")
    func newer() throws {
        try file.open()
        let image = try file.image()
        let error = #expect(throws: StoreError.self) { try file.open(3, fallback: .refetch) }
        #expect(error?.kind == .newer)
        #expect(try file.image() == image)
    }

    @Test("a store opened before another process changed the tables is of no more use")
    func staleStore() throws {
        var bits: UInt64 = 7_000
        let old = try DeviceStore(
            path: SyncedFile.path, migrations: Migrations([SyncedVersions.first]),
            vfs: file.disk.vfsName, now: 1,
            randomBits: {
                bits += 1
                return bits
            })
        let venues = Migration(2, "venues") { context in
            try context.create("CREATE TABLE venues(id INTEGER PRIMARY KEY)")
        }
        try file.open([SyncedVersions.first, venues])
        // A table it does not know is no trouble.
        try old.write(now: 1) { _ = try $0.update("teams", .integer(6), ["city": "Bern"]) }
        try file.open([
            SyncedVersions.first, venues,
            Migration(3, "drop") { try $0.dropColumn("city", from: "teams") },
        ])
        let error = #expect(throws: StoreError.self) {
            try old.write(now: 1) { _ = try $0.update("teams", .integer(6), ["name": "x"]) }
        }
        #expect(error?.kind == .newer)
        #expect(error?.message.contains("Open it again") == true)
        #expect(throws: StoreError.self) {
            try old.gather(
                owner: "o", lease: 1, byteLimit: 100, includesChanges: true, now: 9_000)
        }
        #expect(try file.opened().contradiction() == nil)
    }
}

@Suite("When a version of a device's file fails")
struct SyncedFallbackTests {
    private static let broken =
        SyncedVersions.all + [
            Migration(7, "broken") { context in
                try context.dropColumn("town", from: "teams")
                try context.dropColumn("nothing", from: "teams")
            }
        ]
    private let file: SyncedFile

    init() throws {
        file = try SyncedFile("fallbacks")
    }

    private func checkReadOnly(_ store: DeviceStore) throws {
        func check(_ body: () throws -> Void) {
            let error = #expect(throws: StoreError.self) { try body() }
            #expect(error?.kind == .readOnly)
            #expect(error?.message.contains("Version 7 (broken)") == true)
        }
        check { try store.write(now: 1) { _ in } }
        check {
            _ = try store.gather(
                owner: "o", lease: 1, byteLimit: 9, includesChanges: true, now: 1)
        }
        check {
            _ = try store.apply([], reaching: 9, lineage: nil, dataSet: nil, owner: "o", now: 1)
        }
        let parked = try store.parked()[0].identifier
        check { try store.drop(parked, now: 1) }
        check { try store.retry(parked, now: 1) }
        check { try store.renewIdentity() }
        #expect(try store.clientID.isEmpty == false)
    }

    @Test("the file stays on the old schema, for reading; writes by others are still noted")
    func readOnly() throws {
        let store = try file.open(Self.broken, fallback: .readOnly)
        guard case .readOnly(at: 6, _) = store.migration else {
            Issue.record("\(String(describing: store.migration))")
            return
        }
        try checkReadOnly(store)
        #expect(try store.local.record("teams", .integer(5))?["town"] == "Paris")
        #expect(try store.outboxCount == 5)
        try file.shell("UPDATE teams SET town = 'York' WHERE id = 6")
        let fixed = try file.open(SyncedVersions.all + [Migration(7, "fixed") { _ in }])
        let last = try #require(try fixed.newestQueued()).identifier
        #expect(try fixed.changes(of: last).map(\.attributes) == [["town": "York"]])
    }

    @Test("the file goes back to its copy with the outbox as it was")
    func restoredFromCopy() throws {
        let before = try file.content()
        do {
            let store = try file.open(Self.broken, fallback: .restoreCopy)
            guard case .restored(to: 1, _) = store.migration else {
                Issue.record("\(String(describing: store.migration))")
                return
            }
            try checkReadOnly(store)
            #expect(try store.local.record("teams", .integer(5))?["city"] == "Paris")
        }
        file.close()
        #expect(try file.content() == before)
        #expect(file.disk.paths == [SyncedFile.path])
        #expect(try file.open(fallback: .restoreCopy).migration == .migrated(from: 1, to: 6))
    }

    @Test("the client may refetch the data")
    func refetchFallback() throws {
        let store = try file.open(Self.broken, fallback: .refetch)
        guard case .refetching(let failure) = store.migration else {
            Issue.record("\(String(describing: store.migration))")
            return
        }
        #expect(failure.kind == .unknown)
        try checkReadOnly(store)
    }
}

@Suite("Opening by a script, and by versions after it")
struct ScriptOpeningTests {
    private let device: DeviceFixture

    init() throws {
        device = try DeviceFixture()
    }

    @Test("a script that adds a column or a table takes in what was kept aside")
    func aside() throws {
        try device.apply(
            [
                .entry(
                    1, .created("teams", 5, at: 1, ["name": "Falcons", "colour": "red"]),
                    .created("venues", 9, at: 1, ["name": "Hall"]))
            ], reaching: 1)
        try device.write { try $0.update("teams", .integer(5), ["name": "Hawks"]) }
        try device.shell("UPDATE teams SET city = 'Rome'")
        try device.reopen(
            script: DeviceFixture.script.replacing("city TEXT", with: "colour TEXT, city TEXT")
                + "CREATE TABLE venues(id INTEGER PRIMARY KEY, name TEXT);")
        #expect(
            try device.rows("SELECT name, colour, city FROM teams") == [["Hawks", "red", "Rome"]])
        #expect(try device.rows("SELECT * FROM venues") == [[9, "Hall"]])
        #expect(try !device.text().contains("aside"))
        let sets = try device.gather().changeSets
        #expect(
            sets.map { $0.types[0].entries[0].attributes } == [
                ["name": "Hawks"], ["city": "Rome"],
            ])
        try device.apply([.refusal(sets[0].identifier ?? "", .stale)], reaching: 1)
        #expect(try device.rows("SELECT colour FROM teams") == [["red"]])
    }

    @Test("opening a file that is as it should be writes nothing")
    func nothingToDo() throws {
        let disk = FaultDisk(name: "script-again")
        func open() throws -> DeviceStore {
            try DeviceStore(
                path: "/d.db", script: DeviceFixture.script, vfs: disk.vfsName, randomBits: { 3 })
        }
        var store: DeviceStore? = try open()
        let before = disk.operationCount
        let second = try open()
        // Opening the files, and no write.
        #expect(disk.operationCount - before <= 4)
        #expect(try second.clientID == store?.clientID)
        store = nil
    }

    @Test("a trigger another program has dropped is made again")
    func repaired() throws {
        try device.shell("DROP TRIGGER martlet_capture_update_1")
        try device.reopen()
        try device.apply([.entry(1, .created("teams", 5, at: 1, ["name": "x"]))], reaching: 1)
        try device.shell("UPDATE teams SET city = 'Rome'")
        #expect(try device.gather().changeSets.count == 1)
    }

    @Test("versions take over a file that scripts have made, where the first one allows it")
    func adopted() throws {
        try device.apply([.entry(1, .created("teams", 5, at: 1, ["name": "x"]))], reaching: 1)
        try device.write { try $0.update("teams", .integer(5), ["city": "Rome"]) }
        let script = DeviceFixture.script.replacing(
            "CREATE TABLE", with: "CREATE TABLE IF NOT EXISTS")
        let store = try DeviceStore(
            path: device.path,
            migrations: Migrations([
                Migration(1, "as before") { try $0.create(script) },
                Migration(2, "colour") {
                    try $0.addColumn("colour TEXT DEFAULT 'red'", to: "teams")
                },
            ]), now: 1, randomBits: { 5 })
        #expect(store.migration == .migrated(from: 0, to: 2))
        #expect(try store.local.record("teams", .integer(5))?["colour"] == "red")
        #expect(try store.outboxCount == 1)
    }
}
