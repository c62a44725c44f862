internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import SQLiteFaults
internal import SQLiteKit

/// A simulated device: a disk that survives crashes, and the real device code on it while the
/// device is on.
final class DeviceMachine {
    let number: Int
    let disk: FaultDisk
    /// The number of starts. Messages for an earlier life are lost.
    private(set) var life = 0
    private(set) var node: DeviceNode?
    /// The error of the device's clock, in milliseconds.
    var skew: Int64 = 0
    /// The time before which no message arrives.
    var isolatedUntil: Int64 = 0
    /// The revision up to which the device's confirmed state was checked, and that state.
    var model = Model()
    /// Whether the device may have dropped its tables since the last check, so that its revision
    /// may have gone back.
    var mayHaveDroppedTables = false
    /// Whether it has dropped its tables and has not completed an exchange since.
    var isRefetching = false
    /// The revision of the first part of the snapshot that the device began with; nil if no other
    /// part is to come.
    var seededAt: Revision?
    /// The times at which the newest of its requests and the newest of the answers arrive.
    var newestRequest: Int64 = 0
    var newestAnswer: Int64 = 0
    /// The times until which earlier bytes occupy its line, in each direction.
    var upBusyUntil: Int64 = 0
    var downBusyUntil: Int64 = 0
    /// The time at which bytes of the current exchange last moved, as the device knows it.
    var moved: (exchange: Int, time: Int64) = (0, 0)
    /// The time until which its network answers with its own page.
    var portalUntil: Int64 = 0
    /// Whether the device keeps a stream open.
    var isLive = false
    /// The time at which the newest message of its stream arrives, because a connection keeps their
    /// order.
    var lastArrival: Int64 = 0
    /// The bytes of the last answer or batch, whose slices may still be applied.
    var received = 0
    /// Whether the last answers were stored to be applied together with the next one.
    var isStaging = false

    /// The milliseconds without a byte after which the device gives an exchange up.
    let patience: Int64 = 15_000

    private var app: SimulatedApp
    /// The maximum work of one event.
    var allowance: WorkAllowance {
        app.random == nil ? .device : .deviceWithoutIndexes
    }
    /// Whether the device has the app's next version.
    private(set) var isUpdated = false

    init(number: Int, seed: UInt64, name: String, app: SimulatedApp) {
        self.number = number
        self.app = app
        disk = FaultDisk(name: name, seed: seed, countsWork: true)
    }

    deinit {
        // Connections must be closed while their disk exists, or the disk is never freed.
        node = nil
    }

    var isUp: Bool { node != nil }

    /// Switches the device on.
    /// - Throws: An error if the disk fails during the start; the device stays off.
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
        // Free pages are released at once, page by page.
        (options.freePages, options.pagesOfStep) = (0, 2)
        options.sweptPages = 8
        options.isLive = isLive
        options.usesSnapshots = usesSnapshots
        node = DeviceNode(store: store, options: options)
    }

    /// Switches the device off properly, so that it starts with the app's next version.
    func update(to next: SimulatedApp) {
        node = nil
        app = next
        isUpdated = true
    }

    /// Runs a script of another program on the file.
    func runProgram(_ script: String) throws {
        let program = try Connection(path: "device.sqlite", mode: .readWrite, vfs: disk.vfsName)
        try program.execute(script)
    }

    /// Drops the tables and keeps the sets that are still to be sent. The device is off before and
    /// after.
    /// - Throws: An error if the disk fails meanwhile. All of it or nothing has happened then.
    func beginRefetching(now: Int64, randomBits: @escaping () -> UInt64) throws {
        node = nil
        mayHaveDroppedTables = true
        isRefetching = true
        try DeviceStore.beginRefetching(
            path: "device.sqlite", vfs: disk.vfsName, now: now, randomBits: randomBits,
            making: { try app.makeTables(on: $0) })
    }

    /// Returns whether it may lack saves that were made on it, or show rows that these had
    /// replaced.
    func isOnPast() throws -> Bool {
        guard let store = node?.store, !isRefetching else { return true }
        return try store.pendingSnapshot != nil || store.slicedUpTo != nil
    }

    /// Switches the device off. Changes that its disk had not synced are lost, in whole or in part.
    func stop(_ random: inout SeededRandom) {
        node = nil
        disk.crash()
        disk.restart(using: &random)
    }
}
