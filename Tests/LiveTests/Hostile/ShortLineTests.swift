import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import SocketTalk
import Testing
import Waiting

/// A line whose connections carry some kilobytes and are cut then, so that nothing larger ever gets through at
/// once, and devices that live on or last for one exchange.
@Suite("A line that carries little at once", .timeLimit(.minutes(20)))
struct ShortLineTests {
    /// What a device has to do.
    enum Errand: String, CaseIterable {
        case sends, fetches, begins
    }

    private static let photoBytes = 300_000
    /// The clients that one errand takes at most if each lasts for one exchange: the first may have to find out
    /// what the line carries.
    private static let mostLives = 4

    @Test(
        "carries everything in the end",
        arguments: HostileSize.lines, Errand.allCases.flatMap { [($0, true), ($0, false)] })
    func errand(seed: UInt64, what: (errand: Errand, livesOn: Bool)) async throws {
        var chance = Chance(seed, -5)
        let server = try LiveServer(snapshotEvery: 1, schema: Hand.schema)
        try await server.start()
        let near = try await server.device("near")
        try await near.sync()
        let photo = chance.noise(Self.photoBytes)
        let network = HostileNetwork(
            seed: seed, devices: 1, target: await server.port, other: await server.port,
            character: .short(chance.roll(12_000...60_000)))
        if what.errand != .begins {
            let first = try await server.device("far")
            try await first.sync()
            if what.errand == .sends { try await Self.save(photo, on: first) }
            await first.close()
        }
        if what.errand != .sends {
            try await Self.save(photo, on: near)
            try await near.sync()
        }
        if what.errand == .begins {
            let reached = try await near.status().revision
            let transport = try await server.transport()
            #expect(try await holds { try await transport.manifest()?.revision == reached })
        }
        let fault = try await Self.perform(what.errand, livesOn: what.livesOn, server, network)
        try await near.sync()
        let far = try await server.device("far") { $0.pull = .onRequest }
        let isThere = try await Self.hasPhoto(what.errand == .sends ? near : far)
        if fault != nil || !isThere {
            Issue.record("The photo is there: \(isThere). \(fault ?? "")\n\(network.story)")
        }
        if what.errand == .begins {
            #expect(network.carried("/snapshot/") < 2 * Self.photoBytes, "\(network.story)")
        }
        await far.close()
        await near.close()
        network.close()
        await server.stop()
    }

    private static func save(_ photo: String, on client: MartletClient) async throws {
        try await client.write { try $0.insert("tags", ["note": .text(photo)], id: "photo") }
    }

    private static func hasPhoto(_ client: MartletClient) async throws -> Bool {
        try await client.read { try $0.rows("SELECT id FROM tags WHERE id = 'photo'") }.count == 1
    }

    /// - Returns: What is wrong.
    private static func perform(
        _ errand: Errand, livesOn: Bool, _ server: LiveServer, _ network: HostileNetwork
    ) async throws -> String? {
        for _ in 0..<(livesOn ? 20 : mostLives) {
            let client: MartletClient
            do {
                client = try await open(errand, server, network)
            } catch let error as SyncError {
                network.tell("it cannot be opened: \(error)")
                continue
            }
            let isDone: Bool
            if livesOn {
                client.start()
                isDone = try await holds(within: .seconds(60)) {
                    try await Self.isDone(errand, client)
                }
            } else {
                _ = try? await client.sync()
                isDone = try await Self.isDone(errand, client)
            }
            await client.close()
            if isDone { return nil }
            network.tell("— one life is over")
            if livesOn { return "a minute did not suffice" }
        }
        return "\(mostLives) lives did not suffice"
    }

    private static func open(
        _ errand: Errand, _ server: LiveServer, _ network: HostileNetwork
    ) async throws -> MartletClient {
        let transport = try URLSessionTransport(
            server: try network.url(of: 0), token: LiveServer.token)
        return try await server.device("far", transport: transport) { options in
            options.node.backoff.first = 5
            options.node.backoff.longest = 50
            options.pull = .polling(every: .milliseconds(50))
            options.log = .silent
            if errand == .begins { options.seeding = .server }
            // Between two tries of a download.
            options.sleep = { time in
                try await Task.sleep(for: time == .milliseconds(250) ? .milliseconds(5) : time)
            }
        }
    }

    private static func isDone(_ errand: Errand, _ client: MartletClient) async throws -> Bool {
        errand == .sends
            ? try await client.status().outbox == 0 : try await hasPhoto(client)
    }
}
