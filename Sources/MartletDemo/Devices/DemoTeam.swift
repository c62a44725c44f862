import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import MartletStore

/// The devices of a demo.
struct DemoTeam: Sendable {
    /// Returns a device's transport to its server.
    typealias Network = @Sendable (_ device: Int) throws -> any LiveTransport & SnapshotSource

    var devices: [DemoDevice]
    let schema: Schema
    let paths: [String]
    /// The number of devices that work at the same time. More would only wait for the processors.
    private static let together = 8

    private let folder: DemoFolder
    private let script: String
    private let network: Network

    /// Opens the devices' files, and creates the missing ones, each with its own identity.
    static func open(
        count: Int, _ folder: DemoFolder, script: String, roles: DemoRoles? = nil,
        network: @escaping Network
    ) async throws -> DemoTeam {
        var devices: [DemoDevice] = []
        for number in 1...count {
            devices.append(
                try await open(number, folder, script, network, coach: roles?.coach(of: number)))
        }
        let schema = try await devices[0].client.read { $0.schema }
        return DemoTeam(
            devices: devices, schema: schema, paths: devices.map { folder.device($0.number) },
            folder: folder, script: script, network: network)
    }

    private static func open(
        _ number: Int, _ folder: DemoFolder, _ script: String, _ network: Network,
        coach: String? = nil
    ) async throws -> DemoDevice {
        var options = ClientOptions()
        options.readers = 1
        let client = try await MartletClient.open(
            path: folder.device(number), schema: script, transport: try network(number),
            options: options)
        let schema = try await client.read { $0.schema }
        var device = DemoDevice(
            number: number, client: client, plan: EditPlan(schema), tag: folder.tag)
        try await device.prepare()
        if let coach {
            device.coach = coach
            device.moves = try await ViewMoves(client)
        }
        return device
    }

    /// Opens the file of a closed device again, as its app does at a start.
    func openAgain(_ number: Int) async throws -> DemoDevice {
        try await Self.open(number, folder, script, network)
    }

    /// Returns the bytes of all files of a device.
    func bytes(of device: DemoDevice) throws -> [[UInt8]] { try folder.bytes(of: device.number) }

    /// The path of the file of a device that joins. It has no saves, so each demo creates it again.
    var joinerPath: String { folder.path + "/joiner.sqlite" }

    /// Returns whether the server of a new device has a snapshot; false if it does not answer.
    func hasSnapshot() async -> Bool {
        do {
            return try await network(devices.count + 1).manifest(client: nil) != nil
        } catch {
            return false
        }
    }

    /// The devices of coaches, who see a part.
    var coached: [DemoDevice] { devices.filter { $0.coach != nil } }

    /// The devices whose users see everything.
    var ofOffice: [DemoDevice] { devices.filter { $0.coach == nil } }

    /// Creates a new device, which begins with the server's snapshot over the same network.
    func join(tries: Int) async throws -> DemoDevice {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
        where name.hasPrefix("joiner.sqlite") {
            try FileManager.default.removeItem(atPath: "\(folder.path)/\(name)")
        }
        var options = ClientOptions()
        options.readers = 1
        options.seeding = .server
        options.pull = .live(pollingEvery: .seconds(5))
        let number = devices.count + 1
        for _ in 1..<tries {
            do {
                let client = try await MartletClient.open(
                    path: joinerPath, schema: script, transport: try network(number),
                    options: options)
                return DemoDevice(number: number, client: client, plan: EditPlan(schema), tag: "")
            } catch let error as SyncError where error.kind == .offline {
                continue
            }
        }
        throw DemoError("A new device could not fetch the snapshot in \(tries) tries.")
    }

    /// Runs `body` for every device, a few at a time, and reports the number of completed devices
    /// after each.
    func each(
        _ body: @escaping @Sendable (DemoDevice) async throws -> Void,
        progress: (_ done: Int) -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            var waiting = devices[...]
            for device in waiting.prefix(Self.together) {
                group.addTask { try await body(device) }
            }
            waiting = waiting.dropFirst(Self.together)
            var done = 0
            while try await group.next() != nil {
                done += 1
                progress(done)
                if let device = waiting.popFirst() { group.addTask { try await body(device) } }
            }
        }
    }

    /// Waits until all devices that listen are connected.
    /// - Throws: `DemoError` if one is not in time.
    func connect(_ limit: Duration, progress: (_ done: Int) -> Void) async throws {
        for (index, device) in devices.enumerated() {
            progress(index)
            try await Patience.wait(limit, "Not all devices came to a live connection.") {
                try await device.client.status().connection == .live
            }
        }
    }

    /// Lets all devices exchange until all have everything.
    /// - Throws: `DemoError` if this does not happen in time.
    func drain(
        tries: Int, progress: (_ done: Int, _ total: Int, _ detail: String) -> Void
    ) async throws {
        var wasSent = false
        for _ in 0..<20 {
            try await each({ _ = try await $0.sync(tries: tries) }) {
                progress($0, devices.count, "devices have sent everything")
            }
            var revisions: Set<Revision> = []
            var waiting = 0
            for device in devices {
                let status = try await device.client.status()
                // Somebody who sees a part has the newest revision that concerns him.
                if device.coach == nil { revisions.insert(status.revision) }
                waiting += status.outbox
            }
            // Sets of a coach may be newer than the revision of all others.
            if wasSent, revisions.count == 1, waiting == 0 { return }
            wasSent = waiting == 0
        }
        throw DemoError(
            "After 20 rounds without edits the devices are still not in step; the files are in"
                + " \(folder.path).")
    }

    func close() async {
        for device in devices { await device.client.close() }
    }
}
