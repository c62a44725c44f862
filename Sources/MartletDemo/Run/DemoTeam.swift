import Foundation
import Martlet
import MartletCore
import MartletProtocol
import MartletStore

/// The devices of a demo.
struct DemoTeam: Sendable {
    let devices: [DemoDevice]
    let schema: Schema
    let paths: [String]
    /// Devices at work at the same time; more would only wait for the processors.
    private static let together = 8

    private let directory: String
    private let script: String
    private let network: @Sendable (_ device: Int) throws -> LossyTransport

    /// Opens the devices' files, and makes those that are missing, each with its own identity.
    static func open(
        count: Int, directory: String, script: String, backEnd: any DemoBackEnd, token: String,
        tag: String, faults: NetworkFaults, meter: LiveMeter
    ) async throws -> DemoTeam {
        var bases: [URL: URLSessionTransport] = [:]
        for number in 1...count + 1 {
            let address = backEnd.address(of: number)
            guard bases[address] == nil else { continue }
            bases[address] = try URLSessionTransport(server: address, token: token)
        }
        let network: @Sendable (Int) throws -> LossyTransport = { [bases] number in
            guard let base = bases[backEnd.address(of: number)] else {
                throw DemoError("The demo has no server for device \(number).")
            }
            return LossyTransport(base: base, faults: faults, meter: meter, device: number)
        }
        var devices: [DemoDevice] = []
        var paths: [String] = []
        var options = ClientOptions()
        options.readers = 1
        for number in 1...count {
            let path = "\(directory)/device-\(number).sqlite"
            let client = try await MartletClient.open(
                path: path, schema: script, transport: try network(number), options: options)
            let schema = try await client.read { $0.schema }
            let device = DemoDevice(
                number: number, client: client, plan: EditPlan(schema), tag: tag)
            try await device.prepare()
            devices.append(device)
            paths.append(path)
        }
        let schema = try await devices[0].client.read { $0.schema }
        return DemoTeam(
            devices: devices, schema: schema, paths: paths, directory: directory, script: script,
            network: network)
    }

    /// The file of a device that joins; nobody works on it, so each demo makes it anew.
    var joinerPath: String { "\(directory)/joiner.sqlite" }

    /// Whether the server that a new device will ask has a snapshot; false where no answer comes.
    func hasSnapshot() async -> Bool {
        do {
            return try await network(devices.count + 1).manifest() != nil
        } catch {
            return false
        }
    }

    /// A device that was not there before, begun with the server's snapshot over the same network.
    func join(tries: Int) async throws -> DemoDevice {
        for name in try FileManager.default.contentsOfDirectory(atPath: directory)
        where name.hasPrefix("joiner.sqlite") {
            try FileManager.default.removeItem(atPath: "\(directory)/\(name)")
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

    /// Runs `body` for every device, a few at a time, and tells after each how many are through.
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

    func close() async {
        for device in devices { await device.client.close() }
    }
}
