import Foundation
import Martlet
import MartletDevice
import MartletModel
import SocketTalk
import Synchronization
import Testing
import Waiting

/// A server, another one with other data, some devices, and the network between them.
final class HostileWorld: Sendable {
    /// What a device has told.
    private final class Ear: Sendable {
        let errors = Mutex<[SyncError]>([])
        let stops = Mutex<[SyncError]>([])
    }

    private struct Device: Sendable {
        let client: MartletClient
        let hand: Hand
        let ear: Ear
    }

    let network: HostileNetwork
    private let seed: UInt64
    private let server: LiveServer
    private let other: LiveServer
    private let near: MartletClient
    private let dataSet: String
    private let devices = Mutex<[Device]>([])
    /// What comparisons have found, which is nothing as long as no answer is taken for another one.
    private let found = Mutex<[String]>([])
    /// Whether the device that comes later knows whose data it wants, and has tables of its own.
    private let newcomer: (knowsDataSet: Bool, hasTables: Bool)

    /// Devices that are there from the beginning; one more comes while the network is bad.
    private static let residents = 2

    init(seed: UInt64) async throws {
        self.seed = seed
        server = try LiveServer(snapshotEvery: 1, schema: Hand.schema)
        other = try LiveServer(snapshotEvery: 1, schema: Hand.schema)
        try await server.start()
        try await other.start()
        let stranger = try await other.device("stranger")
        try await stranger.write {
            try $0.insert("teams", ["name": "stranger", "city": "x", "code": "stranger"])
        }
        try await stranger.sync()
        await stranger.close()
        near = try await server.device("near")
        try await near.write { try $0.insert("tags", ["note": "first"], id: "near") }
        try await near.sync()
        dataSet = try await near.status().dataSet ?? ""
        var chance = Chance(seed, -6)
        newcomer = (knowsDataSet: chance.percent(50), hasTables: chance.percent(50))
        network = HostileNetwork(
            seed: seed, devices: Self.residents + 1, target: await server.port,
            other: await other.port, believer: newcomer.knowsDataSet ? nil : Self.residents)
    }

    func run() async throws {
        var chance = Chance(seed, -2)
        for number in 0..<Self.residents {
            // They have met the server before, over a way that is well.
            let first = try await server.device("d\(number)")
            try await first.sync()
            await first.close()
            _ = try await open(number)
        }
        let end = ContinuousClock.now + .milliseconds(chance.roll(1_200...3_000))
        let pause = chance.pick([5, 20, 100])
        try await withThrowingTaskGroup { group in
            for (number, device) in devices.withLock(\.self).enumerated() {
                group.addTask { try await device.hand.work(until: end, pause: pause) }
                if chance.percent(40) {
                    group.addTask { try await self.compare(device, number, until: end) }
                }
            }
            group.addTask {
                try await Task.sleep(for: .milliseconds(300))
                let device = try await self.join()
                try await device.hand.work(until: end, pause: pause)
            }
            // Whoever joins may need the network to become well.
            group.addTask {
                try await Task.sleep(until: end)
                self.network.tell("— the network is well again —")
                self.network.becomeWell()
            }
            try await group.waitForAll()
        }
        // A save ends any wait that another program asked for.
        for device in devices.withLock(\.self) { try await device.hand.save() }
        try await judge()
    }

    func close() async {
        for device in devices.withLock(\.self) { await device.client.close() }
        await near.close()
        network.close()
        await server.stop()
        await other.stop()
    }

    // MARK: - Devices

    /// Compares a device's data with the server's again and again.
    private func compare(
        _ device: Device, _ number: Int, until end: ContinuousClock.Instant
    ) async throws {
        while ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(150))
            do {
                let report = try await device.client.check()
                for finding in report.findings {
                    found.withLock { $0.append("d\(number): \(finding)") }
                }
            } catch let error as SyncError {
                network.tell("d\(number) cannot compare: \(error.kind) \(error)")
                device.ear.errors.withLock { $0.append(error) }
            }
        }
    }

    private func options(_ number: Int) -> @Sendable (inout ClientOptions) -> Void {
        let knowsDataSet = number < Self.residents || newcomer.knowsDataSet
        return { [dataSet] options in
            options.node.backoff.first = 5
            options.node.backoff.longest = 200
            options.node.exchangeTimeout = 1_500
            options.node.haltRetry = 400
            options.node.saveRetry = 50
            options.node.streamRetry = 300
            options.node.steadyStream = 300
            options.node.heldBack = 300
            options.node.quickExchange = 250
            options.pull = .live(pollingEvery: .milliseconds(200))
            options.dataSet = knowsDataSet ? dataSet : nil
            options.log = .silent
        }
    }

    @discardableResult
    private func open(_ number: Int, seeds: Bool = false) async throws -> Device {
        let transport = try URLSessionTransport(
            server: try network.url(of: number), token: LiveServer.token)
        let configure = options(number)
        var options = ClientOptions()
        configure(&options)
        if seeds { options.seeding = .server }
        let path = server.file("d\(number)")
        let client =
            number == Self.residents && !newcomer.hasTables
            ? try await MartletClient.open(
                path: path, schema: nil, server: try network.url(of: number),
                token: LiveServer.token, options: options)
            : try await MartletClient.open(
                path: path, schema: Hand.schema, transport: transport, options: options)
        let ear = Ear()
        let events = client.events
        Task { [network] in
            for await event in events {
                if case .reached = event { network.noteSuccess(of: number) }
                guard case .failed(let error, let retryIn) = event else { continue }
                network.tell(
                    "d\(number) failed, again in \(retryIn.map { "\($0)" } ?? "-"): \(error)")
                ear.errors.withLock { $0.append(error) }
                if retryIn == nil { ear.stops.withLock { $0.append(error) } }
            }
        }
        client.start()
        let device = Device(
            client: client,
            hand: Hand(
                client, name: "d\(number)", chance: Chance(seed, number, -3),
                tell: { [network] in network.tell($0) }),
            ear: ear)
        devices.withLock { $0.append(device) }
        return device
    }

    /// A new device, whose app tries again as long as it is told that this helps.
    private func join() async throws -> Device {
        try leaveBehind()
        while true {
            do {
                return try await open(Self.residents, seeds: true)
            } catch let error as SyncError {
                network.tell("the new device cannot be opened: \(error)")
                // A server with other data may have answered.
                guard
                    error.remedy == .wait || error.kind == .wrongDataSet
                        || network.refusals(Self.residents) > 0
                else { throw error }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    /// Somebody has tried before to make the new device's file, and has left empty files.
    private func leaveBehind() throws {
        var chance = Chance(seed, -9)
        for ending in ["", "-wal", "-shm"] where chance.percent(40) {
            let path = server.file("d\(Self.residents)") + ending
            network.tell("\(path) is there, empty")
            try Data().write(to: URL(fileURLWithPath: path))
        }
    }

    // MARK: - The judgement

    private func judge() async throws {
        let devices = devices.withLock(\.self)
        var expected = ["tag|near|first"]
        for device in devices { expected += await device.hand.rows }
        expected.sort()
        let rows = expected
        try await near.sync()
        let isDone = try await holds(within: .seconds(60)) {
            try await near.sync()
            let reached = try await near.status().revision
            for device in devices {
                let status = try await device.client.status()
                // A device that began with a snapshot may still be adding its rows.
                guard status.outbox == 0, status.revision == reached,
                    try await device.client.seedingStatus().isComplete
                else { return false }
            }
            return try await near.status().revision == reached
        }
        var faults: [String] = []
        if !isDone { faults.append("the devices did not recover") }
        for (number, client) in ([near] + devices.map(\.client)).enumerated() {
            let name = number == 0 ? "the server" : "d\(number - 1)"
            let there = try await Hand.rows(of: client)
            let status = try await client.status()
            if there != rows {
                faults.append(
                    "\(name) lacks \(Self.short(rows, without: there)) and has"
                        + " \(Self.short(there, without: rows)) too much; \(status)")
            }
            if status.outbox + status.parked + status.quarantined + status.withheld > 0 {
                faults.append("\(name): \(status)")
            }
            for set in try await client.parked() {
                faults.append("\(name) has parked: \(set)")
            }
        }
        for (number, device) in devices.enumerated() {
            faults += judge(device.ear, number)
        }
        faults += found.withLock(\.self).prefix(8).map { "a comparison found \($0)" }
        guard faults.isEmpty else {
            throw HostileFault(description: faults.joined(separator: "\n"))
        }
    }

    private func judge(_ ear: Ear, _ number: Int) -> [String] {
        var faults: [String] = []
        let stops = ear.stops.withLock(\.self)
        if stops.count > network.refusals(number) {
            faults.append("d\(number) was stopped by others than the server: \(stops)")
        }
        for error in ear.errors.withLock(\.self)
        where !Self.isSentence(error.message) || [.storage, .file].contains(error.kind) {
            faults.append("d\(number) told: \(error.kind) \(error)")
        }
        return faults
    }

    /// Whether a message is for a person.
    private static func isSentence(_ message: String) -> Bool {
        message.split(separator: " ").count > 3
            && !["Optional(", "Error Domain", "Fault(", "nil"].contains { message.contains($0) }
    }

    private static func short(_ list: [String], without others: [String]) -> String {
        let rest = list.filter { !Set(others).contains($0) }
        return "\(rest.count) rows \(rest.prefix(8).map { $0.prefix(60) })"
            + (list.count == Set(list).count ? "" : ", some twice")
    }
}

struct HostileFault: Error, CustomStringConvertible {
    let description: String
}
