import CompressionKit
import Foundation
import HTTPKit
import Synchronization
import Testing
import Waiting

@testable import Martlet

@Suite("An answer taken whole", .timeLimit(.minutes(5)))
struct WholeAnswerTests {
    @Test("is given up where it goes on, and its connection ends")
    func endless() async throws {
        let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 18)
        let server = StreamServer { _, writer in while true { try await writer.write(piece) } }
        let request = StreamingRequest(url: try await server.start())
        let session = StreamingSession()
        let failure = await #expect(throws: TransportFailure.self) {
            _ = try await session.start(request).whole(limit: 1 << 20)
        }
        #expect(failure?.message.contains("longer than 1048576 bytes") == true)
        #expect(await holds { server.open == 0 })
        await server.stop()
    }

    @Test("is given up where it inflates without end, and little of it is kept meanwhile")
    func inflating() async throws {
        // 64 MiB of one letter, which are some 64 kB.
        let small = Gzip.compress([UInt8](repeating: UInt8(ascii: "x"), count: 64 << 20))
        let server = StreamServer(headers: [HTTPField("Content-Encoding", "gzip")]) { _, writer in
            try await writer.write(small)
        }
        var request = StreamingRequest(url: try await server.start())
        request.inflates = true
        request.bufferBytes = 1 << 20
        let session = StreamingSession()
        let answer = try await session.start(request)
        // Nobody reads: the connection is held up.
        #expect(await stands { answer.chunks.incoming.bufferedBytes })
        #expect(answer.chunks.incoming.bufferedBytes < 2 << 20)
        let failure = await #expect(throws: TransportFailure.self) {
            _ = try await answer.whole(limit: 4 << 20)
        }
        #expect(failure?.message.contains("longer than") == true)
        await server.stop()
    }

    @Test("of exactly the limit is taken")
    func limitOfAnswer() async throws {
        let server = StreamServer { _, writer in
            for _ in 0..<4 { try await writer.write([UInt8](repeating: 7, count: 256)) }
        }
        let url = try await server.start()
        let answer = try await StreamingSession().start(StreamingRequest(url: url))
        #expect(try await answer.whole(limit: 1_024) == [UInt8](repeating: 7, count: 1_024))
        #expect(answer.status == 200)
        await server.stop()
    }

    @Test("ends with the task that waits for it, however early that is cancelled")
    func cancelledAnswer() async throws {
        let server = StreamServer { _, writer in try await writer.write(try await forever()) }
        let request = StreamingRequest(url: try await server.start())
        let session = StreamingSession()
        for isEarly in [true, false] {
            let waiting = Task { _ = try await session.start(request).whole(limit: 1) }
            if !isEarly { #expect(await holds { server.open == 1 }) }
            waiting.cancel()
            await #expect(throws: (any Error).self) { try await waiting.value }
            #expect(await holds { server.open == 0 })
        }
        await server.stop()
    }
}
