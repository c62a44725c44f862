import Foundation
import Martlet
import MartletDevice
import MartletModel
import SocketTalk
import Testing
import Waiting

/// A server that is away: what a client tries costs few requests, as long as nothing of it gets through.
@Suite("A server that is away", .timeLimit(.minutes(10)))
struct AwayTests {
    @Test("is asked about once for each try, and found again", arguments: HostileSize.away)
    func away(seed: UInt64) async throws {
        var chance = Chance(seed, -9)
        let server = try LiveServer(schema: Hand.schema)
        try await server.start()
        let near = try await server.device("near")
        let first = try await server.device("far")
        try await first.sync()
        await first.close()
        let network = HostileNetwork(
            seed: seed, devices: 1, target: await server.port, other: await server.port,
            character: .away)
        let transport = try URLSessionTransport(
            server: try network.url(of: 0), token: LiveServer.token)
        let far = try await server.device("far", transport: transport) { options in
            options.node.backoff.first = 20
            options.node.backoff.longest = 40
            options.node.saveRetry = 40
            options.node.streamRetry = 100_000
            options.pull = .onRequest
            options.log = .silent
        }
        let note = chance.noise(chance.pick([100, 20_000, 100_000]))
        try await far.write { try $0.insert("tags", ["note": .text(note)], id: "note") }
        far.start()
        // What the first exchanges find out about the line takes some requests of its own.
        let (requests, exchanges) = try await Self.tries(5, of: far, network)
        let (later, more) = try await Self.tries(exchanges + 10, of: far, network)
        if more < exchanges + 10 || later - requests > (more - exchanges) * 2 + 4 {
            Issue.record(
                """
                \(later - requests) requests for \(more - exchanges) exchanges
                \(network.story)
                """)
        }
        network.becomeWell()
        let isSent = try await holds(within: .seconds(20)) { try await far.status().outbox == 0 }
        #expect(isSent, "\(network.story)")
        await far.close()
        await near.close()
        network.close()
        await server.stop()
    }
    /// Waits until a client has made so many tries.
    /// - Returns: Its requests and its tries.
    private static func tries(
        _ count: Int, of client: MartletClient, _ network: HostileNetwork
    ) async throws -> (requests: Int, exchanges: Int) {
        _ = try await holds(within: .seconds(30)) {
            try await client.status().traffic.exchanges >= count
        }
        return (network.requests(0), try await client.status().traffic.exchanges)
    }
}
