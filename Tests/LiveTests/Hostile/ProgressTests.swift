import Foundation
import Martlet
import MartletDevice
import MartletModel
import SocketTalk
import Testing
import Waiting

/// Large values over a network that cuts connections and answers with other programs' pages again and
/// again: an exchange of which a piece has got through is not begun again.
@Suite("Progress on a bad network", .timeLimit(.minutes(20)))
struct ProgressTests {
    /// A photo, which no compression makes shorter.
    private static let photoBytes = 400_000

    @Test(
        "is kept: a cut or a page costs one piece",
        arguments: HostileSize.progress, [true, false])
    func photo(seed: UInt64, goesUp: Bool) async throws {
        let server = try LiveServer(schema: Hand.schema)
        try await server.start()
        let near = try await server.device("near")
        try await near.sync()
        let first = try await server.device("far")
        try await first.sync()
        await first.close()
        let network = HostileNetwork(
            seed: seed, devices: 1, target: await server.port, other: await server.port,
            character: .interrupted)
        let transport = try URLSessionTransport(
            server: try network.url(of: 0), token: LiveServer.token)
        let far = try await server.device("far", transport: transport) { options in
            options.node.backoff.first = 5
            options.node.backoff.longest = 50
            options.pull = .polling(every: .milliseconds(50))
        }
        var chance = Chance(seed, -4)
        let photo = chance.noise(Self.photoBytes)
        let (from, to) = goesUp ? (far, near) : (near, far)
        try await from.write { try $0.insert("tags", ["note": .text(photo)], id: "photo") }
        if !goesUp { try await near.sync() }
        far.start()
        let isThere = try await holds(within: .seconds(60)) {
            if goesUp { try await near.sync() }
            return try await to.read { try $0.rows("SELECT id FROM tags WHERE id = 'photo'") }.count
                == 1
        }
        let count = network.pieced.count
        if !isThere || count > 1 {
            Issue.record(
                """
                The photo is there: \(isThere). \(count) exchanges got somewhere; one is enough.
                \(network.story)
                """)
        }
        await far.close()
        await near.close()
        network.close()
        await server.stop()
    }
}
