import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import Testing

/// Devices that begin with the first class of a server's data, as its operator has set up.
@Suite("A server with seeding classes", .timeLimit(.minutes(3)))
struct LazySeedingTests {
    /// Notes refer to marks, which come later.
    private static let plan = """
        { "classes": [ { "name": "early", "types": { "notes": "number < 100" } } ] }
        """

    @Test(
        "the first class can be used while the rest is held back, and the rest is told of when it is there",
        arguments: [true, false])
    func firstClass(hasFile: Bool) async throws {
        let server = try ServerProcess(seeding: Self.plan)
        try await server.start()
        let full = try await server.client("full")
        try await full.write { context in
            for number in Int64(1)...300 {
                let mark = try context.insert(
                    "marks", ["writer": 1, "number": .integer(number), "edits": 0])
                try context.insert("notes", ["mark": mark.sqlValue, "number": .integer(number)])
            }
        }
        let revision = try await full.sync()
        let transport = HeldTransport(
            try URLSessionTransport(server: try await server.address, token: ServerProcess.token))
        while try await transport.manifest()?.revision != revision { await Task.yield() }
        if hasFile {
            // A file without data begins with the snapshot as well.
            let empty = try await MartletClient.open(
                path: server.file("lazy"), schema: ServerProcess.schema, transport: nil)
            await empty.close()
        }
        var options = ClientOptions()
        options.seeding = .server
        options.pull = .live()
        options.node.backoff.longest = 200
        let client = try await MartletClient.open(
            path: server.file("lazy"), schema: ServerProcess.schema, transport: transport,
            options: options)
        let events = client.events
        client.start()
        try await use(client, beside: full, revision)
        let before = try await client.seedingStatus()
        #expect(before.classes.map(\.name) == ["early", "rest"])
        #expect(before.isComplete(class: "early") && !before.isComplete(class: "rest"))
        #expect(!before.isComplete(type: "marks") && !before.isComplete)
        transport.release()
        try await client.waitUntilSeeded()
        let after = try await client.seedingStatus()
        #expect(after.isComplete && after.isComplete(class: "rest"))
        // Where the server has made two newer snapshots meanwhile, the first class comes again.
        for await event in events {
            if case .seeded("rest") = event { break }
        }
        try await compare(client, full)
        let left = try FileManager.default.contentsOfDirectory(atPath: server.folder.path)
        #expect(left.filter { $0.hasPrefix("lazy.sqlite-s") && !$0.hasSuffix("-shm") }.isEmpty)
        await client.close()
        await full.close()
        #expect(await server.stop() == 0)
    }

    /// Works with what is there: reads, changes, sends, and sees what others change.
    private func use(
        _ client: MartletClient, beside full: MartletClient, _ revision: Revision
    ) async throws {
        for await reached in client.revisions where reached >= revision { break }
        #expect(try await count("notes", client) == 99)
        #expect(try await count("marks", client) == 0)
        try await client.write { context in
            try context.rows("UPDATE notes SET number = 7000 WHERE number = 7")
        }
        let sent = try await client.sync()
        #expect(sent == revision + 1)
        try await full.sync()
        try await full.write { context in
            try context.rows("UPDATE marks SET edits = 1 WHERE number = 200")
            try context.rows("DELETE FROM notes WHERE number = 250")
            try context.rows("DELETE FROM marks WHERE number = 250")
        }
        let changed = try await full.sync()
        // The live connection tells of it.
        for await reached in client.revisions where reached >= changed { break }
        #expect(try await count("marks", client) == 1)
    }

    private func compare(_ client: MartletClient, _ full: MartletClient) async throws {
        try await full.sync()
        try await client.sync()
        #expect(try await client.parked().isEmpty)
        for sql in [
            "SELECT * FROM notes ORDER BY id", "SELECT * FROM marks ORDER BY id",
            "SELECT type, id, revision FROM martlet_records ORDER BY 1, 2",
        ] {
            let mine = try await client.read { try $0.rows(sql).map(\.values) }
            let theirs = try await full.read { try $0.rows(sql).map(\.values) }
            #expect(mine == theirs)
        }
        #expect(try await client.check().findings.isEmpty)
    }

    private func count(_ table: String, _ client: MartletClient) async throws -> Int64 {
        let rows = try await client.read { try $0.rows("SELECT count(*) AS n FROM \(table)") }
        guard case .integer(let count)? = rows.first?["n"] else { return -1 }
        return count
    }
}

/// A server's transport that holds back all parts of a snapshot but the first.
private final class HeldTransport: LiveTransport, SnapshotSource {
    private let server: URLSessionTransport
    private let gate: AsyncStream<Void>
    private let key: AsyncStream<Void>.Continuation

    init(_ server: URLSessionTransport) {
        self.server = server
        (gate, key) = AsyncStream.makeStream()
    }

    func release() { key.finish() }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        try await server.exchange(body)
    }

    func deltas(
        _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure) {
        try await server.deltas(cursor, receive: receive)
    }

    func manifest(
        client: String? = nil
    ) async throws(TransportFailure) -> SnapshotManifest? {
        try await server.manifest(client: client)
    }

    func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
    ) async throws(TransportFailure) -> SnapshotBytes {
        if part.name != "early" {
            for await _ in gate {}
        }
        return try await server.open(part, from: offset, tag: tag, client: client)
    }
}
