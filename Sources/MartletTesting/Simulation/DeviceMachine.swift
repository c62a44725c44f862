internal import Martlet
internal import MartletProtocol
internal import SQLiteFaults
internal import SQLiteKit

/// A simulated device: a disk that outlives crashes, and the real device code on it while it is
/// switched on.
final class DeviceMachine {
    let number: Int
    let disk: FaultDisk
    /// Counts starts; what was under way for an earlier life is lost.
    private(set) var life = 0
    private(set) var node: DeviceNode?
    /// Milliseconds the device's clock is off.
    var skew: Int64 = 0
    /// No message arrives before this moment.
    var isolatedUntil: Int64 = 0
    /// Up to which revision, and to what, the device's confirmed state was checked.
    var model = Model()
    /// Whether the device may have begun anew since it was last looked at, so that its revision
    /// may have gone back.
    var mayHaveBegunAnew = false
    /// The revision of the first part of the snapshot the device began with, while others are to
    /// come.
    var seededAt: Revision?
    /// When the newest of its requests arrives, and of the answers to them.
    var newestRequest: Int64 = 0
    var newestAnswer: Int64 = 0
    /// Whether it keeps a stream open.
    var isLive = false
    /// When the newest message of its stream arrives: a connection keeps their order.
    var lastArrival: Int64 = 0
    /// The bytes of the last answer or batch, whose slices may still be applied.
    var received = 0

    private let app: SimulatedApp

    init(number: Int, seed: UInt64, name: String, app: SimulatedApp) {
        self.number = number
        self.app = app
        disk = FaultDisk(name: name, seed: seed, countsWork: true)
    }

    deinit {
        // Connections must be closed while their disk is still there, or it is never freed.
        node = nil
    }

    var isUp: Bool { node != nil }

    /// Switches the device on.
    /// - Throws: When the disk fails during the start; the device stays off.
    func start(
        usesSnapshots: Bool, now: Int64, randomBits: @escaping () -> UInt64
    ) throws {
        life += 1
        let store = try app.open(
            path: "device.sqlite", vfs: disk.vfsName, now: now, randomBits: randomBits)
        var options = DeviceNode.Options()
        options.exchangeTimeout = 15_000
        options.sliceRecords = 7
        options.uploadBytes = 4_000
        // Free pages are given back at once, page by page.
        (options.freePages, options.pagesOfStep) = (0, 2)
        options.isLive = isLive
        options.usesSnapshots = usesSnapshots
        node = DeviceNode(store: store, options: options)
    }

    /// Throws the tables away, keeping what is to be sent. The device is off before and after.
    /// - Throws: When the disk fails on the way; then either has or has not happened.
    func beginAnew(now: Int64, randomBits: @escaping () -> UInt64) throws {
        node = nil
        mayHaveBegunAnew = true
        try DeviceStore.beginAnew(
            path: "device.sqlite", vfs: disk.vfsName, now: now, randomBits: randomBits,
            making: { try app.makeTables(on: $0) })
    }

    /// Switches the device off; what its disk had not synced is lost, in whole or in part.
    func stop(_ random: inout SeededRandom) {
        node = nil
        disk.crash()
        disk.restart(using: &random)
    }
}
