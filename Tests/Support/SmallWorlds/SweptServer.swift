internal import Martlet
internal import MartletDevice
internal import MartletModel
package import MartletServerCore
package import SQLiteFaults
internal import SQLiteKit

/// A server's work on a disk that fails; its devices' are sound.
package final class SweptServer: SweptWork {
    package let disk: FaultDisk
    package let server: SmallServer
    package let devices: [SmallDevice]
    private let deed: (SweptServer) throws -> Void
    package private(set) var acknowledged = 0
    package var whenAcknowledged: () -> Void = {}

    /// - Parameters:
    ///   - images: The server's disk, then those of devices.
    ///   - script: The server's tables.
    ///   - deed: Does what is left to do, with an open server.
    package init(
        _ images: DiskImages, life: Int, script: String = SmallWorld.script,
        _ deed: @escaping (SweptServer) throws -> Void
    ) throws {
        disk = FaultDisk("swept", images[0])
        server = SmallServer(switchedOff: disk, script: script)
        devices = try images.dropFirst().enumerated().map { index, files in
            let device = SmallDevice(
                switchedOff: FaultDisk("swept-device", files),
                number: UInt64(100 + 10 * life + index))
            device.isAlone = true
            try device.open()
            return device
        }
        self.deed = deed
    }

    package var images: DiskImages { [disk.files] + devices.map(\.disk.files) }
    package var node: DataSetNode { get throws { try server.opened() } }

    package func act() throws {
        if server.node == nil { try server.open() }
        try deed(self)
    }

    /// Tells whoever asked that something is done. Nobody hears a machine that is down.
    package func acknowledge() {
        guard !disk.isDown else { return }
        acknowledged += 1
        whenAcknowledged()
    }

    /// A device exchanges until it is content.
    package func sync(_ device: SmallDevice) throws {
        try device.sync(with: server) { _ in self.acknowledge() }
        if let error = device.errors.first { throw error }
    }

    /// - Throws: What the server failed of since it was last asked.
    package func checkFault() throws {
        if let fault = try node.takeFault() { throw fault }
    }

    package func close(life: Int) { server.close() }

    package func state(on disk: FaultDisk) throws -> String {
        try FileState.text(of: "server.sqlite", on: disk, leavingOut: [])
    }

    package func check() throws -> String {
        try act()
        let fresh = try SmallDevice(FaultDisk("swept-fresh", [:]), number: 99)
        // Twice: what one sends last the others fetch.
        for device in devices + devices + [fresh] { try sync(device) }
        let theirs = try server.look()
        let records = try FileState.records(theirs)
        for device in devices + [fresh] {
            let store = try device.store
            if let contradiction = try store.contradiction() { throw SweepFailure(contradiction) }
            guard try store.outboxCount == 0 else {
                throw SweepFailure("something is still queued")
            }
            let mine = try Connection(
                path: "device.sqlite", mode: .readWrite, vfs: device.disk.vfsName)
            guard try FileState.records(mine) == records else {
                throw SweepFailure("a device has something else than the server:\n\(records)")
            }
        }
        let entries = try theirs.integer("SELECT count(*) FROM martlet_log") ?? 0
        let parked = try devices.map { try $0.store.parked().map(\.reason.rawValue).sorted() }
        return "\(records)\(entries) entries, parked: \(parked)"
    }
}

extension SmallServer {
    package func opened() throws -> DataSetNode {
        guard let node else { throw SmallWorldError.closed }
        return node
    }
}
