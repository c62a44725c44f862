import Foundation
import Martlet
import MartletProtocol
import Synchronization
import Testing
import Waiting

@Suite("Closing a client")
struct CloseTests {
    /// A way to the server whose request does not end, cancelled or not, until the test says so.
    private final class HeldTransport: Transport {
        private struct State {
            var asked = false
            var isOpen = false
            var waiting: CheckedContinuation<Void, Never>?
        }

        private let state = Mutex(State())
        let ended = Mutex(false)

        var isAsked: Bool { state.withLock { $0.asked } }

        func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    state.asked = true
                    if !state.isOpen { state.waiting = continuation }
                    return state.isOpen
                }
                if goesOn { continuation.resume() }
            }
            ended.withLock { $0 = true }
            throw TransportFailure(message: "The way was closed.")
        }

        func letGo() {
            let waiting = state.withLock { state in
                state.isOpen = true
                return state.waiting.take()
            }
            waiting?.resume()
        }
    }

    private static func client(
        _ transport: HeldTransport, _ configure: (inout ClientOptions) -> Void = { _ in }
    ) async throws -> (client: MartletClient, folder: URL) {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var options = ClientOptions()
        configure(&options)
        let client = try await MartletClient.open(
            path: folder.appendingPathComponent("d.sqlite").path,
            schema: "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT)", transport: transport,
            options: options)
        client.start()
        try await waitUntil("a request is under way") { transport.isAsked }
        return (client, folder)
    }

    @Test("waits for the request that is under way")
    func waits() async throws {
        let transport = HeldTransport()
        // Time does not pass: only the request's end can end it.
        let (client, folder) = try await Self.client(transport) { options in
            options.sleep = { _ in try await Task.sleep(for: .seconds(3_600)) }
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        let isClosed = Mutex(false)
        async let closing: Void = {
            await client.close()
            #expect(transport.ended.withLock { $0 })
            isClosed.withLock { $0 = true }
        }()
        try await waitUntil("the client refuses work") {
            do {
                try await client.write { _ in }
                return false
            } catch {
                return true
            }
        }
        #expect(!isClosed.withLock { $0 })
        transport.letGo()
        await closing
        #expect(isClosed.withLock { $0 })
        // Once more does nothing.
        await client.close()
    }

    @Test("does not wait for ever")
    func bounded() async throws {
        let transport = HeldTransport()
        let limits = Mutex<[Duration]>([])
        let (client, folder) = try await Self.client(transport) { options in
            options.sleep = { limit in limits.withLock { $0.append(limit) } }
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        await client.close()
        #expect(!transport.ended.withLock { $0 })
        #expect(limits.withLock { $0 } == [.seconds(5)])
        transport.letGo()
    }
}
