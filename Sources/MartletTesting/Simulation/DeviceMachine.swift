internal import Martlet
internal import MartletDevice
internal import MartletModel
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
    /// Whether it has begun anew and has not come to the end of an exchange since.
    var isFetchingAnew = false
    /// The revision of the first part of the snapshot the device began with, while others are to
    /// come.
    var seededAt: Revision?
    /// When the newest of its requests arrives, and of the answers to them.
    var newestRequest: Int64 = 0
    var newestAnswer: Int64 = 0
    /// Until when its line is taken by what was sent before, each way.
    var upBusyUntil: Int64 = 0
    var downBusyUntil: Int64 = 0
    /// When bytes of the exchange under way moved last, as the device knows it.
    var moved: (exchange: Int, time: Int64) = (0, 0)
    /// Until when its network answers with a page of its own.
    var portalUntil: Int64 = 0
    /// Whether it keeps a stream open.
    var isLive = false
    /// When the newest message of its stream arrives: a connection keeps their order.
    var lastArrival: Int64 = 0
    /// The bytes of the last answer or batch, whose slices may still be applied.
    var received = 0

    /// Milliseconds without a byte after which it gives an exchange up.
    let patience: Int64 = 15_000

    private var app: SimulatedApp
    /// The work that one event may cause.
    var allowance: WorkAllowance {
        app.random == nil ? .device : .deviceWithoutIndexes
    }
    /// Whether it has the app's next version.
    private(set) var isUpdated = false

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
        options.exchangeTimeout = patience
        options.sliceRecords = 7
        options.uploadBytes = 4_000
        // Free pages are given back at once, page by page.
        (options.freePages, options.pagesOfStep) = (0, 2)
        options.isLive = isLive
        options.usesSnapshots = usesSnapshots
        node = DeviceNode(store: store, options: options)
    }

    /// Switches the device off, as it is meant to be, to start with the app's next version.
    func update(to next: SimulatedApp) {
        node = nil
        app = next
        isUpdated = true
    }

    /// Another program runs a script on the file.
    func runProgram(_ script: String) throws {
        let program = try Connection(path: "device.sqlite", mode: .readWrite, vfs: disk.vfsName)
        try program.execute(script)
    }

    /// Throws the tables away, keeping what is to be sent. The device is off before and after.
    /// - Throws: When the disk fails on the way; then either has or has not happened.
    func beginAnew(now: Int64, randomBits: @escaping () -> UInt64) throws {
        node = nil
        mayHaveBegunAnew = true
        isFetchingAnew = true
        try DeviceStore.beginAnew(
            path: "device.sqlite", vfs: disk.vfsName, now: now, randomBits: randomBits,
            making: { try app.makeTables(on: $0) })
    }

    /// Returns whether it may lack some of what was saved on it, or show what that took the place of.
    func isOnPast() throws -> Bool {
        guard let store = node?.store, !isFetchingAnew else { return true }
        return try store.pendingSnapshot != nil || store.slicedUpTo != nil
    }

    /// Switches the device off; what its disk had not synced is lost, in whole or in part.
    func stop(_ random: inout SeededRandom) {
        node = nil
        disk.crash()
        disk.restart(using: &random)
    }
}
