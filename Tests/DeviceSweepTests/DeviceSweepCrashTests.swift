import MartletModel
import MartletServerCore
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// What a device does, each time with another operation of its disk failing.
///
/// `scripts/long sweep` tries all points; by default a share is tried.
@Suite("A device's work on a failing disk", .serialized)
struct DeviceSweepCrashTests {
    private func sweep(
        _ name: String, _ images: DiskImages, snapshot: SmallSnapshot? = nil, limit: Int,
        transactions: Int, _ deed: @escaping (SweptDevice) throws -> Void
    ) throws {
        let scenario = SweptScenario(name, images) { images, life in
            try SweptDevice(images, life: life, snapshot: snapshot, deed)
        }
        try FaultSweep(scenario).run(limit: limit, transactions: transactions)
    }

    @Test("an exchange: sets go out, two are refused, others' changes come in slices")
    func exchangeUnderCrashes() throws {
        try FaultSweep(.exchange()).run(limit: 16, transactions: 7)
    }

    @Test("saves, and an exchange, on a file whose last owner was killed")
    func restartAfterKill() throws {
        try FaultSweep(.restart()).run(limit: 16, transactions: 10)
    }

    @Test("a person decides: one refused set is sent again, one is dropped")
    func decision() throws {
        let team = try SweptTeam("decision")
        try team.queue()
        try team.overtake()
        try team.mine.sync(with: team.world.server)
        #expect(try team.mine.store.parkedCount == 2)
        try sweep("decision", team.deviceImages, limit: 16, transactions: 4) { work in
            let store = try work.device.store
            for set in try store.parked() {
                if set.changes.first?.id == .integer(2) {
                    _ = try store.retry(set.identifier, now: 2_000)
                } else {
                    try store.drop(set.identifier, now: 2_000)
                }
                work.acknowledge()
            }
            try work.sync()
        }
    }

    /// A device that has begun refetching with a queue, beside a snapshot that is older than the log.
    private func seeded(_ name: String, _ plan: SeedingPlan) throws -> (SweptTeam, SmallSnapshot) {
        let team = try SweptTeam(name)
        try team.queue()
        let snapshot = try team.world.server.snapshot(plan)
        try team.overtake()
        try team.mine.beginRefetching()
        return (team, snapshot)
    }

    @Test("a snapshot takes the place of all, under a queue")
    func seeding() throws {
        let (team, snapshot) = try seeded("seeding", .whole)
        try sweep(
            "seeding", team.deviceImages, snapshot: snapshot, limit: 16, transactions: 12
        ) { try $0.sync() }
    }

    @Test("a snapshot comes in three parts")
    func partsOfSnapshotUnderCrashes() throws {
        let plan = SeedingPlan(classes: [
            .init(name: "first", types: ["teams": .all]),
            .init(name: "second", types: ["players": .all]),
        ])
        let (team, snapshot) = try seeded("parts", plan)
        try sweep(
            "parts", team.deviceImages, snapshot: snapshot, limit: 16, transactions: 14
        ) { work in
            try work.sync()
            guard try work.device.store.pendingSnapshot == nil else {
                throw SyncError(.storage, "A part was not installed: \(work.device.parts)")
            }
        }
    }

    @Test("a difference comes in slices, under a queue")
    func differenceUnderQueue() throws {
        let team = try SweptTeam("difference")
        try team.queue()
        try team.overtake()
        try team.overtakeMore()
        try sweep("difference", team.deviceImages, limit: 16, transactions: 12) { try $0.sync() }
    }

    @Test("a device refetches everything")
    func refetchUnderCrashes() throws {
        let team = try SweptTeam("anew")
        try team.queue()
        try team.overtake()
        try sweep("anew", team.deviceImages, limit: 16, transactions: 9) { work in
            if !work.isBegun {
                work.device.close()
                try work.device.beginRefetching()
                work.isBegun = true
                work.acknowledge()
            }
            try work.sync()
        }
    }

    @Test("a device comes back to a server that was restored from a backup")
    func rejoining() throws {
        let team = try SweptTeam("rejoining")
        let backup = team.world.server.disk.files
        try team.queue()
        try team.mine.sync(with: team.world.server)
        try team.mine.write { try $0.insert("teams", ["name": "Never sent"]) }
        let images = [team.mine.disk.files, backup]
        try sweep("rejoining", images, limit: 16, transactions: 8) { try $0.sync() }
    }

    @Test("an app's tables are led through five versions, under a queue")
    func migrationUnderQueue() throws {
        let image = try SyncedFile("sweep").image()
        let scenario = SweptScenario("migration", [[SyncedFile.path: image]]) { images, life in
            SweptMigration(images, life: life)
        }
        try FaultSweep(scenario).run(limit: 16, transactions: 5)
    }
}
