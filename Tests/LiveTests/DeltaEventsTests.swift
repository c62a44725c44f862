import Foundation
import HTTPKit
import MartletModel
import MartletProtocol
import Synchronization
import Testing
import Waiting

@testable import Martlet
@testable import MartletDevice

@Suite("Deltas over a stream of events", .timeLimit(.minutes(5)))
struct DeltaEventsTests {
    /// What a stream has brought.
    private final class Heard: Sendable {
        let events = Mutex<[LiveEvent]>([])

        func add(_ event: LiveEvent) {
            events.withLock { $0.append(event) }
        }

        var isOpen: Bool { events.withLock { $0.first == .opened } }

        /// The versions of the batches.
        var versions: [Revision] {
            events.withLock { events in
                events.compactMap { event in
                    guard case .batch(let bytes) = event else { return nil }
                    return try? SyncCoder.decodeDeltaBatch(bytes).nextVersion
                }
            }
        }
    }

    private static func save(_ name: String, _ transport: some Transport) async throws {
        var request = SyncRequest(maxRevision: 0)
        request.clientID = name
        var set = ChangeSet(types: [
            TypeChanges(
                name: "teams", create: [.integer(-1)],
                entries: [
                    RecordEntry(
                        id: .integer(-1),
                        attributes: Attributes(names: ["name"], values: [.text(name)]))
                ])
        ])
        set.identifier = name
        set.sequence = 1
        set.seen = 0
        request.changeSets = [set]
        let answer = try await transport.exchange(try SyncCoder.encode(request))
        #expect(answer.status == 200)
    }

    @Test("bring what is missed, then each change, from any cursor, and end with the server")
    func batches() async throws {
        let server = try LiveServer()
        try await server.start()
        let transport = try await server.transport()
        try await Self.save("a", transport)
        let heard = Heard()
        let listening = Task {
            try await transport.deltas(DeltaCursor(since: 0, clientID: "x y+z")) { heard.add($0) }
        }
        #expect(await holds { heard.versions == [1] })
        #expect(heard.isOpen)
        try await Self.save("b", transport)
        #expect(await holds { heard.versions == [1, 2] })
        let later = Heard()
        let second = Task {
            try await transport.deltas(DeltaCursor(since: 2)) { later.add($0) }
        }
        #expect(await holds { later.isOpen })
        try await Self.save("c", transport)
        #expect(await holds { later.versions == [3] && heard.versions == [1, 2, 3] })
        await server.stop()
        // In good order: no throw.
        try await listening.value
        try await second.value
    }

    @Test("tell of the server's signs of life when it gave them")
    func signs() async throws {
        let page = StreamServer("text/event-stream") { _, writer in
            try await writer.write([UInt8](":15003\n\ndata: {}\n\n".utf8))
        }
        let transport = try URLSessionTransport(server: try await page.start(), token: "t")
        let heard = Heard()
        try await transport.deltas(DeltaCursor(since: 0)) { heard.add($0) }
        #expect(
            heard.events.withLock { $0 }
                == [.opened, .sign(milliseconds: 15_003), .batch([UInt8]("{}".utf8))])
        await page.stop()
    }

    @Test("wait for their listener: the next is read when it has taken the one before")
    func slowListener() async throws {
        let server = try LiveServer()
        try await server.start()
        let transport = try await server.transport()
        let heard = Heard()
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let listening = Task {
            try await transport.deltas(DeltaCursor(since: 0)) { event in
                heard.add(event)
                if case .batch = event { for await _ in gate { break } }
            }
        }
        #expect(await holds { heard.isOpen })
        for name in ["a", "b", "c"] { try await Self.save(name, transport) }
        #expect(await stands { heard.versions.count })
        #expect(heard.versions.count == 1)
        open.finish()
        #expect(await holds { heard.versions.last == 3 })
        listening.cancel()
        await #expect(throws: TransportFailure.self) { try await listening.value }
        await server.stop()
    }

    @Test("are refused with the server's status and sentence")
    func refusedByServer() async throws {
        let server = try LiveServer()
        try await server.start()
        let stranger = try await server.transport(token: "wrong")
        let unknown = await #expect(throws: TransportFailure.self) {
            try await stranger.deltas(DeltaCursor(since: 0)) { _ in }
        }
        #expect(unknown?.status == 401)
        #expect(unknown?.problem?.kind == "unauthorized")
        let transport = try await server.transport()
        let ahead = await #expect(throws: TransportFailure.self) {
            try await transport.deltas(DeltaCursor(since: 9)) { _ in }
        }
        #expect(ahead?.status == 409)
        #expect(ahead?.problem?.kind == "revisionAhead")
        await server.stop()
        let gone = await #expect(throws: TransportFailure.self) {
            try await transport.deltas(DeltaCursor(since: 0)) { _ in }
        }
        #expect(gone?.status == nil)
    }

    @Test("are refused where the answer is something else, or an event is too large")
    func strange() async throws {
        let page = StreamServer { _, writer in try await writer.write([UInt8]("<html>".utf8)) }
        let transport = try URLSessionTransport(server: try await page.start(), token: nil)
        let failure = await #expect(throws: TransportFailure.self) {
            try await transport.deltas(DeltaCursor(since: 0)) { _ in }
        }
        #expect(failure?.status == 200)
        await page.stop()
    }

    @Test(
        "that end say whether they did within a batch",
        arguments: [
            (":\n\n", false), ("data: {}\n\n", false), ("data: {}\n\nid: 1\n", true),
            ("data: {}\n\ndata: {", true), ("data: {}\n", true),
        ])
    func within(text: String, isInBatch: Bool) async throws {
        let page = StreamServer("text/event-stream") { _, writer in
            try await writer.write([UInt8](text.utf8))
        }
        let transport = try URLSessionTransport(server: try await page.start(), token: nil)
        var failure: TransportFailure?
        do throws(TransportFailure) {
            try await transport.deltas(DeltaCursor(since: 0)) { _ in }
        } catch {
            failure = error
        }
        #expect((failure?.isInBatch ?? false) == isInBatch)
        await page.stop()
    }

    @Test("are asked for with everything the cursor says, escaped")
    func address() throws {
        let server = try #require(URL(string: "https://example.org/base/"))
        let cursor = DeltaCursor(since: 7, clientID: "a&b+c=ü", dataSet: "d 1", lineage: "l")
        #expect(
            DeltaEvents.address(server, cursor).absoluteString
                == "https://example.org/base/deltas?since=7&entries=1&client=a%26b%2Bc%3D%C3%BC"
                + "&dataSet=d%201&lineage=l")
        #expect(
            DeltaEvents.address(server, DeltaCursor(since: 0)).absoluteString
                == "https://example.org/base/deltas?since=0&entries=1")
    }
}
