internal import Martlet
internal import MartletProtocol
internal import SQLiteFaults

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

    init(number: Int, seed: UInt64, name: String) {
        self.number = number
        disk = FaultDisk(name: name, seed: seed)
    }

    deinit {
        // Connections must be closed while their disk is still there, or it is never freed.
        node = nil
    }

    var isUp: Bool { node != nil }

    /// Switches the device on.
    /// - Throws: When the disk fails during the start; the device stays off.
    func start(randomBits: @escaping () -> UInt64) throws {
        life += 1
        let store = try DeviceStore(
            path: "device.sqlite", script: Workload.script, vfs: disk.vfsName,
            randomBits: randomBits)
        var options = DeviceNode.Options()
        options.exchangeTimeout = 15_000
        options.sliceRecords = 7
        options.uploadBytes = 4_000
        node = DeviceNode(store: store, options: options)
    }

    /// Switches the device off; what its disk had not synced is lost, in whole or in part.
    func stop(_ random: inout SeededRandom) {
        node = nil
        disk.crash()
        disk.restart(using: &random)
    }
}
