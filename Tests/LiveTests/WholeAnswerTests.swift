import Foundation
import HTTPKit
import Synchronization
import Testing
import Waiting

@testable import Martlet

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("An answer taken whole", .timeLimit(.minutes(5)))
struct WholeAnswerTests {
    @Test("is given up where it goes on, and its connection ends")
    func endless() async throws {
        let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 18)
        let server = StreamServer { _, writer in while true { try await writer.write(piece) } }
        let request = URLRequest(url: try await server.start())
        let answers = WholeAnswers(configuration: .ephemeral, limit: 1 << 20)
        let failure = await #expect(throws: TransportFailure.self) {
            _ = try await answers.answer(to: request)
        }
        #expect(failure?.message.contains("longer than 1048576 bytes") == true)
        #expect(await holds { server.open == 0 })
        await server.stop()
    }

    @Test("of exactly the limit is taken")
    func limit() async throws {
        let server = StreamServer { _, writer in
            for _ in 0..<4 { try await writer.write([UInt8](repeating: 7, count: 256)) }
        }
        let url = try await server.start()
        let answers = WholeAnswers(configuration: .ephemeral, limit: 1_024)
        let (data, response) = try await answers.answer(to: URLRequest(url: url))
        #expect(data == Data(repeating: 7, count: 1_024))
        #expect(response.statusCode == 200)
        await server.stop()
    }

    @Test("ends with the task that waits for it, however early that is cancelled")
    func cancelled() async throws {
        let server = StreamServer { _, writer in try await writer.write(try await forever()) }
        let request = URLRequest(url: try await server.start())
        let answers = WholeAnswers(configuration: .ephemeral)
        for isEarly in [true, false] {
            let waiting = Task { _ = try await answers.answer(to: request) }
            if !isEarly { #expect(await holds { server.open == 1 }) }
            waiting.cancel()
            await #expect(throws: (any Error).self) { try await waiting.value }
            #expect(await holds { server.open == 0 })
        }
        await server.stop()
    }
}
