import Foundation
import HTTPKit
import Synchronization
import Testing
import Waiting

@testable import Martlet

@Suite("Requests whose answers are read as they come", .timeLimit(.minutes(5)))
struct StreamingRequestTests {
    private static func session() -> StreamingSession {
        StreamingSession()
    }

    @Test("give status, head and each piece while the answer goes on")
    func piecesOfAnswer() async throws {
        let (asked, ask) = AsyncStream.makeStream(of: Int.self)
        let server = StreamServer { request, writer in
            #expect(request.headers["x-name"] == "value")
            #expect(request.headers["accept-encoding"] == "identity")
            for await number in asked { try await writer.write([UInt8]("\(number)\n".utf8)) }
        }
        let url = try await server.start()
        let session = Self.session()
        let answer = try await session.start(
            StreamingRequest(url: url, headers: ["X-Name": "value"]))
        #expect(answer.status == 200)
        #expect(answer.headers["content-type"] == "text/plain")
        var chunks = answer.chunks.makeAsyncIterator()
        for number in 1...5 {
            // Asked for only now: nothing is held back until the end.
            ask.yield(number)
            #expect(try await chunks.next() == [UInt8]("\(number)\n".utf8))
        }
        ask.finish()
        #expect(try await chunks.next() == nil)
        #expect(try await chunks.next() == nil)
        #expect(await holds { session.count == 0 })
        await server.stop()
    }

    @Test("keep a bounded part of what nobody reads, and lose nothing of it")
    func boundedUnreadPart() async throws {
        let written = Mutex(0)
        let pieces = [UInt8]((0..<1 << 16).map { UInt8($0 % 128) })
        let server = StreamServer { _, writer in
            for _ in 0..<512 {
                try await writer.write(pieces)
                written.withLock { $0 += pieces.count }
                // At a pace at which the client can say that it has enough.
                try await Task.sleep(for: .milliseconds(2))
            }
        }
        let url = try await server.start()
        let session = Self.session()
        let answer = try await session.start(StreamingRequest(url: url, bufferBytes: 1 << 18))
        #expect(await stands { written.withLock { $0 } })
        // 32 MiB are there; the sockets' buffers hold a few.
        #expect(written.withLock { $0 } < 16 << 20)
        #expect(answer.chunks.incoming.bufferedBytes < 1 << 20)
        var all: [UInt8] = []
        for try await chunk in answer.chunks { all += chunk }
        #expect(all.count == 512 * pieces.count)
        // Each byte follows its predecessor: nothing missing, nothing twice.
        #expect(all.indices.allSatisfy { all[$0] == UInt8($0 % 128) })
        await server.stop()
    }

    @Test(
        "end at the server when their answer is let go of, even held up", arguments: [0, 1 << 22])
    func letGo(bytes: Int) async throws {
        let server = StreamServer { _, writer in
            try await writer.write([1])
            if bytes > 0 { try await writer.write([UInt8](repeating: 2, count: bytes)) }
            while true { try await writer.write(try await forever()) }
        }
        let url = try await server.start()
        let session = Self.session()
        do {
            let answer = try await session.start(StreamingRequest(url: url, bufferBytes: 1 << 16))
            var chunks = answer.chunks.makeAsyncIterator()
            #expect(try await chunks.next()?.first == 1)
            #expect(server.open == 1)
        }
        #expect(await holds { server.open == 0 })
        #expect(await holds { session.count == 0 })
        await server.stop()
    }

    @Test("end when their task is cancelled, before and after the head")
    func cancelledRequest() async throws {
        let server = StreamServer { request, writer in
            if request.path == "/body" { try await writer.write([1]) }
            while true { try await writer.write(try await forever()) }
        }
        let url = try await server.start()
        for path in ["head", "body"] {
            let session = Self.session()
            let task = Task {
                let answer = try await session.start(
                    StreamingRequest(url: url.appendingPathComponent(path)))
                for try await _ in answer.chunks {}
            }
            #expect(await holds { server.open == 1 })
            task.cancel()
            await #expect(throws: TransportFailure.self) { try await task.value }
            #expect(await holds { server.open == 0 })
            #expect(await holds { session.count == 0 })
        }
        await server.stop()
    }

    @Test("end when nothing has come for four quarters of the silence allowed, and not before")
    func silenceOfServer() async throws {
        let (quarters, quarter) = AsyncStream.makeStream(of: Void.self)
        let passed = Mutex<[Duration]>([])
        let (asked, ask) = AsyncStream.makeStream(of: UInt8.self)
        let server = StreamServer { _, writer in
            for await byte in asked { try await writer.write([byte]) }
        }
        let url = try await server.start()
        let session = StreamingSession { duration in
            for await _ in quarters { break }
            passed.withLock { $0.append(duration) }
        }
        ask.yield(1)
        let answer = try await session.start(StreamingRequest(url: url, silence: .seconds(40)))
        var chunks = answer.chunks.makeAsyncIterator()
        #expect(try await chunks.next() == [1])
        // The first sees what came; three without anything are not enough.
        for count in 1...4 {
            quarter.yield()
            #expect(await holds { passed.withLock { $0.count } == count })
        }
        ask.yield(2)
        #expect(try await chunks.next() == [2])
        for _ in 1...5 { quarter.yield() }
        let failure = await #expect(throws: TransportFailure.self) { _ = try await chunks.next() }
        #expect(failure?.message.contains("too long") == true)
        #expect(passed.withLock { $0 } == [Duration](repeating: .seconds(10), count: 9))
        #expect(await holds { server.open == 0 })
        quarter.finish()
        await server.stop()
    }

    @Test("fail where the answer is cut off, and where nobody listens")
    func cutStreamedAnswer() async throws {
        let (gate, cut) = AsyncStream.makeStream(of: Void.self)
        let server = StreamServer { _, writer in
            try await writer.write([1])
            for await _ in gate {}
            throw HTTPStreamClosed()
        }
        let url = try await server.start()
        let session = Self.session()
        let answer = try await session.start(StreamingRequest(url: url))
        var chunks = answer.chunks.makeAsyncIterator()
        #expect(try await chunks.next() == [1])
        cut.finish()
        await #expect(throws: TransportFailure.self) { _ = try await chunks.next() }
        await server.stop()
        await #expect(throws: TransportFailure.self) {
            _ = try await session.start(StreamingRequest(url: url))
        }
        #expect(await holds { session.count == 0 })
    }
}
