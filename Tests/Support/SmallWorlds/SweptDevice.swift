internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletStore
package import SQLiteFaults
package import SQLiteKit

/// A device's work on a disk that fails; its server's is sound.
package final class SweptDevice: SweptWork {
    package let disk: FaultDisk
    package let device: SmallDevice
    package let server: SmallServer
    private let deed: (SweptDevice) throws -> Void
    package private(set) var acknowledged = 0
    package var whenAcknowledged: () -> Void = {}
    /// Whether a step was done that is not done twice in one life.
    package var isBegun = false
    package let hasDetours: Bool

    /// - Parameters:
    ///   - images: The device's disk, then the server's.
    ///   - deed: Does what is left to do, on an open device.
    package init(
        _ images: DiskImages, life: Int, snapshot: SmallSnapshot? = nil,
        _ deed: @escaping (SweptDevice) throws -> Void
    ) throws {
        disk = FaultDisk("swept", images[0])
        server = try SmallServer(FaultDisk("swept-server", images[1]))
        device = SmallDevice(switchedOff: disk, number: UInt64(100 + life))
        device.isAlone = true
        device.snapshot = snapshot
        self.deed = deed
        // What a snapshot fails of comes as entries.
        hasDetours = snapshot != nil
    }

    package var images: DiskImages { [disk.files, server.disk.files] }

    package func act() throws {
        if !device.isOpen { try device.open() }
        try deed(self)
    }

    /// Tells whoever asked that something is done. Nobody hears a machine that is down.
    package func acknowledge() {
        guard !disk.isDown else { return }
        acknowledged += 1
        whenAcknowledged()
    }

    /// Exchanges until the device is content.
    package func sync() throws {
        try device.sync(with: server) { _ in self.acknowledge() }
        if let error = device.errors.first { throw error }
    }

    package func close(life: Int) {
        device.close()
        device.renew(number: UInt64(100 + life))
        isBegun = false
    }

    package func state(on disk: FaultDisk) throws -> String {
        try FileState.text(of: "device.sqlite", on: disk, leavingOut: ["martlet_lease"])
    }

    package func check() throws -> String {
        try act()
        let store = try device.store
        if let contradiction = try store.contradiction() { throw SweepFailure(contradiction) }
        guard try store.outboxCount == 0 else { throw SweepFailure("something is still queued") }
        let mine = try Connection(path: "device.sqlite", mode: .readWrite, vfs: disk.vfsName)
        let theirs = try server.look()
        let records = try FileState.records(mine)
        guard try records == FileState.records(theirs) else {
            throw SweepFailure("the device has:\n\(records)\nthe server something else")
        }
        let entries = try theirs.integer("SELECT count(*) FROM martlet_log") ?? 0
        let parked = try store.parked().map { "\($0.reason.rawValue) \($0.changes.count)" }
        return "\(records)\(entries) entries, parked: \(parked.sorted())"
    }
}

extension SmallServer {
    /// A connection beside the server's own, to a file that is whole.
    package func look() throws -> Connection {
        let connection = try Connection(
            path: "server.sqlite", mode: .readWrite, vfs: disk.vfsName)
        try FileState.check(connection)
        guard try connection.text("PRAGMA foreign_key_check") == nil else {
            throw SweepFailure("a reference leads nowhere")
        }
        return connection
    }
}
