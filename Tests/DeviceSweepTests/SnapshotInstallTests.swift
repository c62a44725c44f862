import MartletModel
import MartletStore
import RandomKit
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Snapshots under a queue")
struct SnapshotInstallTests {
    /// A device that has begun refetching with work queued: a set the server took without its knowing, one
    /// it will refuse, and one never sent. The snapshot is older than the server's newest entry.
    private func device(_ world: SmallWorld) throws -> SmallDevice {
        let (mine, other) = (try world.device(), try world.device())
        try other.write { context in
            for number in Int64(1)...5 {
                let team = try context.insert("teams", ["name": .text("Team \(number)")])
                try context.insert(
                    "players", ["team_id": team.sqlValue, "name": "P", "shirt": .integer(number)])
            }
        }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        try mine.write { context in
            let team = try context.insert("teams", ["name": "Mine"])
            try context.insert("players", ["team_id": team.sqlValue, "name": "Ada"])
        }
        try mine.write { try $0.update("teams", .integer(2), ["city": "Rome"]) }
        try other.write { try $0.update("teams", .integer(2), ["city": "Bonn"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server, lost: 1)
        mine.snapshot = try world.server.snapshot()
        try other.write { try $0.update("teams", .integer(3), ["city": "Pisa"]) }
        try other.sync(with: world.server)
        try mine.write { try $0.update("teams", .integer(-2), ["city": "Oslo"]) }
        try mine.write { try $0.delete("players", .integer(1)) }
        try mine.beginRefetching()
        return mine
    }

    /// What the device must show in the end, and what must have become of its work.
    private func check(_ mine: SmallDevice, _ server: SmallServer, _ comment: Comment) throws {
        #expect(try mine.store.contradiction() == nil, comment)
        #expect(try mine.store.outboxCount == 0, comment)
        #expect(try mine.store.parked().map(\.reason) == [.stale], comment)
        #expect(try mine.store.standing.staged == nil, comment)
        let teams = try mine.store.local.rows("SELECT name, city FROM teams ORDER BY id")
        #expect(
            teams.map(\.values) == [
                ["Team 1", "Oslo"], ["Team 2", "Bonn"], ["Team 3", "Pisa"], ["Team 4", "Oslo"],
                ["Team 5", "Oslo"], ["Mine", "Oslo"],
            ], comment)
        let players = try mine.store.local.rows(
            "SELECT count(*), count(DISTINCT name), min(id), sum(team_id < 0) FROM players")
        #expect(players.map(\.values) == [[5, 2, 2, 0]], comment)
        let fresh = try SmallDevice(
            FaultDisk(name: "fresh-\(server.disk.vfsName)"), number: 77)
        try fresh.sync(with: server)
        #expect(try fresh.store.confirmedState() == mine.store.confirmedState(), comment)
    }

    @Test("its rows take the place of all, with the fates of own sets, and the queue goes out")
    func installs() throws {
        let world = try SmallWorld("seeded")
        let mine = try device(world)
        try mine.sync(with: world.server)
        #expect(mine.errors.isEmpty)
        #expect(mine.disk.contents(of: try mine.store.snapshotPath) == nil)
        try check(mine, world.server, "in the end")
    }

    @Test(
        "a snapshot that is none is passed over: everything comes as entries", arguments: [0, 900])
    func spoilt(bytes: Int) throws {
        let world = try SmallWorld("spoilt-\(bytes)")
        let mine = try device(world)
        let file = try #require(mine.snapshot?.files["all"])
        mine.snapshot?.files = ["all": Array(file.prefix(bytes))]
        try mine.sync(with: world.server)
        #expect(mine.errors.count == 1)
        try check(mine, world.server, "in the end")
    }

    @Test("a crash at any operation: after it, the same end")
    func crashesOfSnapshot() throws {
        let world = try SmallWorld("seeding")
        let original = try device(world)
        original.close()
        var random = SplitMix64(seed: 5)
        var operation = 0
        var isDone = false
        while !isDone {
            operation += 1
            let server = try world.restoredServer()
            let disk = FaultDisk(name: "crashed-\(operation)", seed: 1)
            for path in original.disk.paths {
                if let bytes = original.disk.contents(of: path) { disk.install(bytes, at: path) }
            }
            let device = try SmallDevice(disk, number: 9)
            device.snapshot = original.snapshot
            device.close()
            try device.open()
            let count = disk.operationCount
            disk.failAfter(operations: operation, kind: .crash)
            _ = try? device.sync(with: server)
            isDone = disk.operationCount - count < operation
            device.close()
            disk.heal()
            if disk.isDown { disk.restart(using: &random) }
            try device.open()
            try device.sync(with: server)
            try check(device, server, "operation \(operation)")
        }
        #expect(operation > 50)
    }
}
