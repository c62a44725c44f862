import MartletModel
import MartletStore
import RandomKit
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Refetching: crashes")
struct RefetchCrashTests {
    /// What must be there, whatever happens.
    private static let work: Set<String> = [
        "martlet_outbox", "martlet_changes", "martlet_parked", "martlet_parked_changes",
        "martlet_ids", "martlet_receipts", "martlet_aside", "martlet_references",
    ]

    private func device(_ name: String) throws -> SmallDevice {
        let world = try SmallWorld(name)
        let (mine, other) = (try world.device(), try world.device())
        try other.write { context in
            for number in 1...5 {
                let team = try context.insert("teams", ["name": .text("Team \(number)")])
                try context.insert("players", ["team_id": team.sqlValue, "name": "P"])
            }
        }
        try mine.write { try $0.insert("teams", ["name": "Mine"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        try mine.write { try $0.update("teams", .integer(2), ["city": "Rome"]) }
        try other.write { try $0.update("teams", .integer(2), ["city": "Bonn"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        #expect(try mine.store.parkedCount == 1)
        try mine.write { context in
            try context.update("teams", .integer(3), ["city": "Rome"])
            try context.insert("players", ["team_id": 3, "name": "New"])
        }
        try mine.sync(with: world.server, lost: 1)
        try mine.write { try $0.delete("teams", .integer(5)) }
        return mine
    }

    private func work(_ device: SmallDevice) throws -> [String] {
        try device.dump(leavingOut: ["martlet_outbox.applied"]).filter { line in
            Self.work.contains(String(line.prefix { $0 != ":" }))
        }
    }

    @Test("a crash at any operation: the old file or the new one, and nothing queued lost")
    func crash() throws {
        try fail(name: "anew-crash", kind: .crash)
    }

    @Test(
        "an operation that fails, or a full disk, leaves the old file",
        arguments: [FaultDisk.Failure.ioError, .full])
    func failure(kind: FaultDisk.Failure) throws {
        try fail(name: "anew-\(kind)", kind: kind)
    }

    private func fail(name: String, kind: FaultDisk.Failure) throws {
        let original = try device(name)
        let work = try work(original)
        let old = try original.dump()
        original.close()
        var random = SplitMix64(seed: 3)
        var ends = (old: 0, new: 0)
        var operation = 0
        var isDone = false
        while !isDone {
            operation += 1
            let disk = FaultDisk(name: "\(name)-\(operation)", seed: 1)
            for path in original.disk.paths {
                if let bytes = original.disk.contents(of: path) { disk.install(bytes, at: path) }
            }
            disk.failAfter(operations: operation, kind: kind)
            let count = disk.operationCount
            var failure: (any Error)?
            do {
                try DeviceStore.beginRefetching(
                    path: "device.sqlite", vfs: disk.vfsName, now: 1, randomBits: { 5 },
                    making: { try $0.execute(SmallWorld.script) })
            } catch {
                failure = error
            }
            isDone = disk.operationCount - count < operation
            disk.heal()
            if disk.isDown { disk.restart(using: &random) }
            let device = try SmallDevice(disk, number: 9)
            if let problem = try device.store.contradiction() {
                Issue.record("operation \(operation): \(problem)")
            }
            #expect(try self.work(device) == work, "operation \(operation)")
            if try device.store.standing.refetching == nil {
                ends.old += 1
                #expect(failure != nil, "operation \(operation)")
                #expect(try device.dump() == old, "operation \(operation)")
            } else {
                ends.new += 1
                #expect(try device.store.revision == 0)
                #expect(try device.store.shownState().isEmpty)
                #expect(try device.store.confirmedState().isEmpty)
            }
        }
        #expect(ends.old > 10 && ends.new > 0)
    }
}
