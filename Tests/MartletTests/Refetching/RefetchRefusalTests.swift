import MartletModel
import MartletProtocol
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Refetching: what is refused")
struct RefetchRefusalTests {
    private func world(_ name: String, teams: Int = 6) throws -> (SmallWorld, SmallDevice) {
        let world = try SmallWorld(name)
        let device = try world.device()
        for number in 1...teams {
            try device.write { try $0.insert("teams", ["name": .text("Team \(number)")]) }
        }
        try device.sync(with: world.server)
        return (world, device)
    }

    @Test("a server that was restored from an older copy is noticed before anything is fetched")
    func otherHistory() throws {
        let (world, mine) = try world("anew-history")
        let restored = try world.restoredServer()
        try mine.write { try $0.insert("teams", ["name": "Lost by the restoring"]) }
        try mine.sync(with: world.server)
        let other = try world.device()
        for _ in 0..<9 { try other.write { try $0.insert("teams", ["name": "Another history"]) } }
        try other.sync(with: restored)
        try mine.beginRefetching()
        var revisions: [Revision] = []
        try mine.sync(with: restored) { revisions.append(try $0.revision) }
        #expect(mine.errors.isEmpty)
        // Nothing of it is shown before all of it is there.
        #expect(!revisions.isEmpty && revisions.allSatisfy { $0 >= 15 })
        try other.sync(with: restored)
        #expect(try mine.store.confirmedState() == other.store.confirmedState())
        // What was lost was sent again: number 7 is another record now.
        #expect(try mine.store.record("teams", 7)?["name"] == "Another history")
        #expect(try mine.store.record("teams", 16)?["name"] == "Lost by the restoring")
        #expect(try mine.store.parked().isEmpty)
        #expect(try mine.store.outboxCount == 0)
        let standing = try mine.store.standing
        #expect(standing.refetching == nil && standing.rejoining == nil)
    }

    @Test("a server whose log ends before the device's revision is noticed")
    func shorterHistory() throws {
        let (_, mine) = try world("anew-short")
        let empty = try SmallServer(FaultDisk(name: "anew-short-empty"))
        // As if refetching had begun in the midst of an answer, when the hash was not known.
        try mine.store.applying.setState("lineage", .null)
        try mine.beginRefetching()
        try mine.sync(with: empty)
        #expect(mine.errors.isEmpty)
        // All it made was lost there, and is there again.
        let names = try mine.store.local.rows("SELECT name FROM teams ORDER BY name")
            .map { $0["name"] }
        #expect(names == (1...6).map { .text("Team \($0)") })
        #expect(try mine.store.outboxCount == 0)
        let standing = try mine.store.standing
        #expect(standing.refetching == nil && standing.rejoining == nil)
    }

    @Test("an answer to a request from before does not fit the file any more")
    func lateAnswer() throws {
        let (_, mine) = try world("anew-late")
        let before = try mine.store
        _ = try before.gather(
            owner: "late", lease: 10, byteLimit: 1_000, includesChanges: true, now: 1)
        try DeviceStore.beginRefetching(
            path: "device.sqlite", vfs: mine.disk.vfsName, now: 1, randomBits: { 1 },
            making: { try $0.execute(SmallWorld.script) })
        let set = ChangeSet.entry(7, .created("teams", 9, at: 7, ["name": "Late"]))
        let report = try before.apply(
            [set], reaching: 7, lineage: nil, dataSet: nil, owner: "late", now: 2)
        #expect(report == nil)
        #expect(try before.revision == 0)
    }

    @Test("a file that is no device's, and one that is not there, stay as they are")
    func noDevice() throws {
        let disk = FaultDisk(name: "anew-none")
        func begin(_ path: String) throws {
            try DeviceStore.beginRefetching(
                path: path, vfs: disk.vfsName, now: 1, randomBits: { 1 }, making: { _ in })
        }
        #expect(throws: SQLiteError.self) { try begin("nothing.sqlite") }
        #expect(disk.contents(of: "nothing.sqlite") == nil)
        let other = try Connection(path: "other.sqlite", vfs: disk.vfsName)
        try other.execute("CREATE TABLE teams(id INTEGER PRIMARY KEY)")
        #expect {
            try begin("other.sqlite")
        } throws: {
            ($0 as? StoreError)?.kind == .file
        }
        #expect(try other.integer("SELECT count(*) FROM sqlite_schema") == 1)
    }

    @Test(
        "tables that cannot be are refused, and the file stays as it was",
        arguments: [
            SmallWorld.script + "INSERT INTO teams VALUES (1, 'Mine', 'Oslo');",
            "CREATE TABLE teams(name TEXT)", "CREATE TABLE teams(",
        ])
    func badTables(script: String) throws {
        let (_, mine) = try world("anew-bad-\(script.utf8.count)")
        try mine.write { try $0.update("teams", .integer(5), ["city": "Rome"]) }
        let before = try mine.dump()
        #expect(throws: (any Error).self) { try mine.beginRefetching(script: script) }
        try mine.open()
        #expect(try mine.dump() == before)
    }

    @Test(
        "an edit made on the past overrides nothing, though an own set before it knew more",
        arguments: [false, true])
    func past(isDifference: Bool) throws {
        let device = try DeviceFixture()
        let first = ChangeSet.entry(1, .created("teams", 5, at: 1, ["name": "Falcons"]))
        let others = ChangeSet.entry(2, .updated("teams", 5, at: 2, ["name": "Hawks"]))
        try device.apply([first, others], reaching: 2)
        try device.write { try $0.update("teams", .integer(5), ["city": "Rome"]) }
        let knowing = try #require(try device.gather().changeSets.first?.identifier)
        try DeviceStore.beginRefetching(
            path: device.path, now: 1, randomBits: { 7 },
            making: { try $0.execute(DeviceFixture.script) })
        try device.reopen()
        try device.apply([first], reaching: 1)
        // What is shown is the past: nobody sees that others gave the team another name.
        try device.write { try $0.update("teams", .integer(5), ["name": "Owls"]) }
        let own = ChangeSet.entry(
            3, own: knowing, .updated("teams", 5, at: 3, ["city": "Rome"]))
        let rows = DeviceFixture.difference(
            3, .updated("teams", 5, at: 3, ["name": "Hawks", "city": "Rome"]))
        _ = try device.gather()
        let report = try device.apply([isDifference ? rows : others, own], reaching: 3)
        #expect(report.receipts.map(\.outcome) == [.accepted, .refused])
        #expect(report.receipts.last?.reason == .stale)
        #expect(
            try device.rows("SELECT name, city FROM teams") == [["Hawks", "Rome"]])
        #expect(try device.store.parkedCount == 1)
    }
}
