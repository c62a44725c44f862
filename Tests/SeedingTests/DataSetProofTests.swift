import Foundation
import MartletModel
import MartletProtocol
import MartletServer
import Synchronization
import Testing
import Waiting

@testable import Martlet
@testable import MartletDevice

/// A device that begins with a snapshot takes none of another data set than its edits will go to.
@Suite("Whose snapshot a device begins with", .timeLimit(.minutes(5)))
struct DataSetProofTests {
    /// A way to a server that says what it is told to.
    private final class Told: Transport {
        let requests = Mutex<[SyncRequest]>([])
        private let reply: @Sendable (SyncRequest) throws -> TransportAnswer

        init(_ reply: @escaping @Sendable (SyncRequest) throws -> TransportAnswer) {
            self.reply = reply
        }

        func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
            do {
                let request = try SyncCoder.decodeRequest(body)
                requests.withLock { $0.append(request) }
                return try reply(request)
            } catch {
                throw error as? TransportFailure ?? TransportFailure(message: "\(error)")
            }
        }

        static func answering(dataSet: String?, request: String? = nil) -> Told {
            Told { asked in
                var answer = SyncAnswer(maxRevision: asked.maxRevision, more: false, changeSets: [])
                answer.dataSet = dataSet
                answer.request = request ?? asked.request
                return TransportAnswer(status: 200, body: try SyncCoder.encode(answer))
            }
        }

        static func refusing(_ status: Int, _ kind: String) -> Told {
            Told { _ in
                TransportAnswer(
                    status: status,
                    body: SyncCoder.encode(Problem(status: status, kind: kind, detail: "no")))
            }
        }
    }

    private static func seed(
        _ fixture: SeedingFixture, _ source: FakeSource, _ transport: Told, dataSet: String? = nil
    ) async throws {
        var options = ClientOptions()
        options.dataSet = dataSet
        try await Seeder(
            path: fixture.device, schema: .script(SeedingFixture.script), options: options
        ).run(.server, from: source, proof: transport)
    }

    @Test("one that the server of its edits does not know is not kept")
    func other() async throws {
        let fixture = try SeedingFixture()
        let ways: [(Told, String?)] = [
            (.refusing(409, "wrongDataSet"), nil), (.answering(dataSet: "other"), nil),
            (.answering(dataSet: SeedingFixture.identity), "other"),
        ]
        for (transport, expected) in ways {
            let error = await #expect(throws: SyncError.self) {
                try await Self.seed(fixture, fixture.source(), transport, dataSet: expected)
            }
            #expect(error?.kind == .wrongDataSet)
            #expect(try fixture.left().isEmpty)
        }
        // The next try begins anew, and is well where all is of one data set.
        let transport = Told.answering(dataSet: SeedingFixture.identity)
        try await Self.seed(fixture, fixture.source(), transport, dataSet: SeedingFixture.identity)
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
        let requests = transport.requests.withLock { $0 }
        let asked = try #require(requests.first)
        #expect(asked.dataSet == SeedingFixture.identity)
        #expect(asked.maxRevision == fixture.manifest.revision)
        #expect(asked.lineage == fixture.manifest.lineage)
        #expect(asked.changeSets.isEmpty)
    }

    @Test("one whose server cannot be asked waits, and is not fetched twice")
    func unknownServerState() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source()
        let ways: [(Told, SyncError.Kind)] = [
            (.answering(dataSet: SeedingFixture.identity, request: "another's"), .offline),
            (Told { _ in TransportAnswer(status: 200, body: [UInt8]("<html>".utf8)) }, .offline),
            (Told { _ in throw TransportFailure(message: "cut") }, .offline),
            (.refusing(503, "busy"), .busy), (.refusing(401, "unauthorized"), .unauthorized),
        ]
        for (transport, kind) in ways {
            let error = await #expect(throws: SyncError.self) {
                try await Self.seed(fixture, source, transport)
            }
            #expect(error?.kind == kind)
            #expect(!FileManager.default.fileExists(atPath: fixture.device))
        }
        // Another history of the same data set is what the first exchange deals with.
        try await Self.seed(fixture, source, .refusing(409, "lineage"))
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
        // Each call asks whether the file is still the device's to have.
        let count = try #require(fixture.manifest.parts.first?.codings.first?.sum.bytes)
        #expect(source.opened == [0] + [Int64](repeating: count - 1, count: ways.count))
    }

    @Test(
        "one with records that the user was not given is not kept, and the device begins with rows")
    func notGiven() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source()
        let name = try await Seeder(
            path: fixture.device, schema: .script(SeedingFixture.script), options: ClientOptions()
        ).run(.server, from: source, proof: Told.refusing(409, "view"))
        #expect(name != nil && name == source.clients.last)
        #expect(try fixture.left().isEmpty)
    }

    /// Fetches with one token and exchanges with another, as a cache that takes no heed of tokens would have
    /// it.
    private struct MixedUp: Transport, SnapshotSource {
        let fetching: URLSessionTransport
        let exchanging: URLSessionTransport

        func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
            try await exchanging.exchange(body)
        }

        func manifest(client: String?) async throws(TransportFailure) -> SnapshotManifest? {
            try await fetching.manifest(client: client)
        }

        func open(
            _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
        ) async throws(TransportFailure) -> SnapshotBytes {
            try await fetching.open(part, from: offset, tag: tag, client: client)
        }
    }

    @Test("a running server's other data set is told from the own one")
    func live() async throws {
        let fixture = try SeedingFixture()
        let data = fixture.folder.appendingPathComponent("data")
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: false)
        try FileManager.default.copyItem(
            at: fixture.folder.appendingPathComponent("server.sqlite"),
            to: data.appendingPathComponent("league.sqlite"))
        var configuration = ServerConfiguration(
            dataDirectory: data.path, schema: SeedingFixture.script)
        configuration.tokens = [try FixedToken("league:secret"), try FixedToken("other:hidden")]
        configuration.log = ServerLog(minimum: .error) { _ in }
        let server = MartletServer(configuration)
        let port = try await server.start()
        let url = try #require(URL(string: "http://127.0.0.1:\(port)"))
        let league = try URLSessionTransport(server: url, token: "secret")
        let other = try URLSessionTransport(server: url, token: "hidden")
        try await waitUntil("there is a snapshot") { try await league.manifest() != nil }
        var options = ClientOptions()
        options.seeding = .server
        let error = await #expect(throws: SyncError.self) {
            _ = try await MartletClient.open(
                path: fixture.device, schema: SeedingFixture.script,
                transport: MixedUp(fetching: league, exchanging: other), options: options)
        }
        #expect(error?.kind == .wrongDataSet)
        #expect(try fixture.left().isEmpty)
        let client = try await MartletClient.open(
            path: fixture.device, schema: SeedingFixture.script,
            transport: MixedUp(fetching: league, exchanging: league), options: options)
        #expect(try await client.sync() == fixture.manifest.revision)
        #expect(try await client.read { try $0.rows("SELECT id FROM players").count } == 1_900)
        await client.close()
        await server.stop()
    }

    /// Fetches from one server and exchanges with another.
    private struct Two: Transport, SnapshotSource {
        let source: FakeSource
        let told: Told

        func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
            try await told.exchange(body)
        }

        func manifest(client: String?) async throws(TransportFailure) -> SnapshotManifest? {
            try await source.manifest(client: client)
        }

        func open(
            _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
        ) async throws(TransportFailure) -> SnapshotBytes {
            try await source.open(part, from: offset, tag: tag, client: client)
        }
    }

    @Test("the files of one that is given up go with the next exchange")
    func givenUp() async throws {
        let fixture = try SeedingFixture()
        let script = SeedingFixture.script
        let first = try await MartletClient.open(path: fixture.device, schema: script)
        await first.close()
        let begun = fixture.device + "-seed.json"
        let wasLeft = Mutex(false)
        let asked = Mutex(0)
        let told = Told { request in
            let count = asked.withLock { count in
                count += 1
                return count
            }
            // The server lets nobody ask whose snapshot it is, and takes the exchange after that.
            guard count > 1 else {
                let problem = Problem(status: 401, kind: "unauthorized", detail: "no")
                return TransportAnswer(status: 401, body: SyncCoder.encode(problem))
            }
            wasLeft.withLock { $0 = FileManager.default.fileExists(atPath: begun) }
            var answer = SyncAnswer(maxRevision: 0, more: false, changeSets: [])
            answer.dataSet = SeedingFixture.identity
            answer.request = request.request
            return TransportAnswer(status: 200, body: try SyncCoder.encode(answer))
        }
        var options = ClientOptions()
        options.seeding = .server
        let client = try await MartletClient.open(
            path: fixture.device, schema: script,
            transport: Two(source: fixture.source(), told: told), options: options)
        #expect(try await client.sync() == 0)
        #expect(wasLeft.withLock { $0 })
        #expect(try !fixture.left().contains { $0.contains("-seed") })
        await client.close()
    }
}
