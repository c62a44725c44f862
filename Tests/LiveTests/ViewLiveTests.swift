import Foundation
import Martlet
import MartletModel
import Synchronization
import Testing
import Waiting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Devices of people who see a part of the data set, over the network.
@Suite("People who see a part", .timeLimit(.minutes(5)))
struct ViewLiveTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, owner TEXT,
            team INTEGER REFERENCES teams(id) ON DELETE CASCADE);
        """

    private static let rules = """
        CREATE POLICY every ON teams USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY own ON players FOR SELECT USING (owner = martlet_user());
        CREATE POLICY change ON players FOR UPDATE USING (owner = martlet_user()) WITH CHECK (true);
        CREATE POLICY add ON players FOR INSERT WITH CHECK (true);
        """

    private static func players(_ client: MartletClient) async throws -> [String] {
        try await client.read { context in
            try context.rows("SELECT name FROM players ORDER BY name").compactMap {
                if case .text(let name)? = $0["name"] { name } else { nil }
            }
        }
    }

    private static func add(
        _ name: String, of owner: String, _ client: MartletClient
    ) async throws {
        try await client.write {
            _ = try $0.insert("players", ["name": .text(name), "owner": .text(owner)])
        }
        try await client.sync()
    }

    /// A server with two people: the office, which exchanges when told to, and Ann, who is live.
    private struct Pair {
        let server: LiveServer
        let office: MartletClient
        let ann: MartletClient
        /// The token with which Ann comes.
        let token: String

        init() async throws {
            server = try LiveServer(
                snapshotEvery: 1, schema: ViewLiveTests.schema, rules: ViewLiveTests.rules)
            try await server.start()
            office = try await server.device(
                "office",
                transport: try await server.transport(
                    token: server.makeToken(user: "olga", roles: ["office"]).text)
            ) { $0.pull = .onRequest }
            try await ViewLiveTests.add("Canary1", of: "bob", office)
            try await ViewLiveTests.add("Mine1", of: "ann", office)
            token = try server.makeToken(user: "ann").text
            ann = try await Self.open(server, token)
        }

        static func open(_ server: LiveServer, _ token: String) async throws -> MartletClient {
            try await server.device(
                "ann", transport: try await server.transport(token: token)
            ) {
                $0.pull = .live(pollingEvery: nil)
                $0.node.backoff.first = 20
                $0.node.backoff.longest = 200
            }
        }

        func end(_ more: MartletClient...) async {
            for client in [office, ann] + more { await client.close() }
            await server.stop()
        }

        /// The bytes of Ann's file and what stands beside it.
        func bytes() throws -> String {
            try ["", "-wal"].map { suffix in
                let path = server.file("ann") + suffix
                guard FileManager.default.fileExists(atPath: path) else { return "" }
                let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
                return String(decoding: bytes, as: Unicode.ASCII.self)
            }.joined()
        }
    }

    @Test("a device has what its user sees: at the start, by the stream, and after own saves")
    func live() async throws {
        let pair = try await Pair()
        pair.ann.start()
        #expect(try await holds { try await Self.players(pair.ann) == ["Mine1"] })
        #expect(try await holds { try await pair.ann.status().connection == .live })
        try await Self.add("Canary2", of: "bob", pair.office)
        try await Self.add("Mine2", of: "ann", pair.office)
        #expect(try await holds { try await Self.players(pair.ann) == ["Mine1", "Mine2"] })
        // What she makes for Bob is accepted, and gone from her device.
        try await Self.add("Gift", of: "bob", pair.ann)
        #expect(
            try await holds { try await pair.ann.status().outbox == 0 })
        #expect(try await holds { try await Self.players(pair.ann) == ["Mine1", "Mine2"] })
        try await pair.office.sync()
        #expect(
            try await Self.players(pair.office) == ["Canary1", "Canary2", "Gift", "Mine1", "Mine2"])
        // The office gives one of hers away.
        try await pair.office.write {
            try $0.prepare("UPDATE players SET owner = 'bob' WHERE name = 'Mine1'").run([])
        }
        try await pair.office.sync()
        #expect(try await holds { try await Self.players(pair.ann) == ["Mine2"] })
        #expect(try await pair.ann.status().parked == 0)
        await pair.end()
        #expect(try !pair.bytes().contains("Canary"))
    }

    @Test("a role that comes or goes, and other rules, move only what they show")
    func moves() async throws {
        let pair = try await Pair()
        try await pair.ann.sync()
        #expect(try await Self.players(pair.ann) == ["Mine1"])
        await pair.ann.close()
        let promoted = try await Pair.open(
            pair.server, pair.server.makeToken(user: "ann", roles: ["office"]).text)
        try await promoted.sync()
        #expect(try await Self.players(promoted) == ["Canary1", "Mine1"])
        await promoted.close()
        let back = try await Pair.open(pair.server, pair.token)
        try await back.sync()
        #expect(try await Self.players(back) == ["Mine1"])
        try await pair.server.start(
            rules: Self.rules.replacing("owner = martlet_user()", with: "name LIKE 'Can%'"))
        try await back.sync()
        #expect(try await Self.players(back) == ["Canary1"])
        try await pair.server.start(rules: nil)
        try await back.sync()
        #expect(try await Self.players(back) == ["Canary1", "Mine1"])
        #expect(try await back.status().parked == 0)
        await pair.end(back)
    }

    /// The bytes of a snapshot that a device received.
    private final class Received: Sendable {
        let bytes = Mutex<Int64>(0)
    }

    /// A device that begins with the server's snapshot, and exchanges when told to.
    private static func seeded(
        _ name: String, _ pair: Pair, _ received: Received
    ) async throws -> MartletClient {
        try await pair.server.device(
            name, transport: try await pair.server.transport(token: pair.token)
        ) {
            $0.pull = .onRequest
            $0.seeding = .server
            $0.seedingProgress = { progress in received.bytes.withLock { $0 = progress.received } }
        }
    }

    @Test("a new device begins with a snapshot of its user's view, and ends right if that changes")
    func snapshots() async throws {
        let pair = try await Pair()
        let url = try await pair.server.url.appendingPathComponent("snapshot").appending(
            queryItems: [URLQueryItem(name: "client", value: "reader")])
        func status(_ token: String) async throws -> Int {
            var request = URLRequest(url: url)
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
            let (_, response) = try await URLSession.shared.data(for: request)
            return (response as? HTTPURLResponse)?.statusCode ?? 0
        }
        // One request alone leads to none.
        #expect(try await status(pair.token) == 404)
        #expect(try await holds { try await status(pair.token) == 200 })
        let received = Received()
        let second = try await Self.seeded("second", pair, received)
        #expect(received.bytes.withLock { $0 > 0 })
        #expect(try await Self.players(second) == ["Mine1"])
        try await Self.add("Mine2", of: "ann", pair.office)
        try await second.sync()
        #expect(try await Self.players(second) == ["Mine1", "Mine2"])
        // The view of a device that has only the snapshot becomes another one, before it comes again.
        let third = try await Self.seeded("third", pair, received)
        #expect(try await Self.players(third) == ["Mine1"])
        try await pair.server.start(
            rules: Self.rules.replacing("owner = martlet_user()", with: "name = 'Mine2'"))
        for client in [second, third] {
            try await client.sync()
            #expect(try await Self.players(client) == ["Mine2"])
            #expect(try await client.status().parked == 0)
        }
        await second.close()
        await third.close()
        await pair.end()
        for name in ["second", "third"] {
            for suffix in ["", "-wal", "-snapshot"] {
                let path = pair.server.file(name) + suffix
                guard FileManager.default.fileExists(atPath: path) else { continue }
                let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
                let text = String(decoding: bytes, as: Unicode.ASCII.self)
                #expect(!text.contains("Canary") && !text.contains("Mine1"), "\(name)\(suffix)")
            }
        }
    }
}
