import ConnectionKit
import Synchronization
import Testing

@Suite("Kept connection")
struct KeptConnectionTests {
    private let server = FakeServer()

    private func kept(patience: Duration = .seconds(10)) -> KeptConnection<FakeConnection> {
        KeptConnection(
            label: "test", pace: server.pace,
            backoff: Backoff(first: .seconds(1), limit: .seconds(4)), patience: patience,
            make: { [server] in try server.connect() })
    }

    @Test("connects when first needed, once")
    func lazily() async throws {
        let kept = kept()
        #expect(server.state.withLock { $0.attempts } == 0)
        #expect(try await kept.run { $0.number } == 1)
        #expect(try await kept.run { $0.number } == 1)
        #expect(server.state.withLock { $0.attempts } == 1)
    }

    @Test("connects anew after the server hung up, before work begins")
    func again() async throws {
        let kept = kept()
        _ = try await kept.run { $0.number }
        server.hangUp()
        #expect(try await kept.run { $0.number } == 2)
        #expect(server.state.withLock { $0.closed } == 1)
        #expect(await kept.connectionsMade == 2)
    }

    @Test("waits longer after each failure, and not at all after a success")
    func waits() async throws {
        server.state.withLock { $0.refusals = Array(repeating: FakeError(mayPass: true), count: 3) }
        let kept = kept()
        #expect(try await kept.run { $0.number } == 1)
        let waits = server.state.withLock { $0.waits }
        #expect(waits == [.seconds(1), .seconds(2), .seconds(4)])
        server.hangUp()
        #expect(try await kept.run { $0.number } == 2)
        #expect(server.state.withLock { $0.waits.count } == 3)
    }

    @Test("gives up when its patience is over, with the last error")
    func patience() async throws {
        server.state.withLock {
            $0.refusals = Array(repeating: FakeError(mayPass: true), count: 100)
        }
        let kept = kept(patience: .seconds(5))
        await #expect(throws: FakeError(mayPass: true)) { try await kept.run { $0.number } }
        // 1 + 2 seconds were waited; 4 more would have been too long.
        #expect(server.state.withLock { $0.waits } == [.seconds(1), .seconds(2)])
        // Work that comes within the wait is not let at the server either.
        let attempts = server.state.withLock { $0.attempts }
        #expect(attempts == 3)
    }

    @Test("does not try again where that helps nobody")
    func refusedWorkIsNotRetried() async throws {
        server.state.withLock { $0.refusals = [FakeError(mayPass: false)] }
        let kept = kept()
        await #expect(throws: FakeError(mayPass: false)) { try await kept.run { $0.number } }
        #expect(server.state.withLock { $0.waits }.isEmpty)
        #expect(try await kept.run { $0.number } == 1)
    }

    @Test("passes on what the work throws, and does not repeat it")
    func work() async throws {
        let kept = kept()
        let runs = Mutex(0)
        await #expect(throws: FakeError(mayPass: true)) {
            try await kept.run { _ in
                runs.withLock { $0 += 1 }
                throw FakeError(mayPass: true)
            }
        }
        #expect(runs.withLock { $0 } == 1)
    }

    @Test("a cancelled task wakes its work, and leaves the next alone", .timeLimit(.minutes(1)))
    func cancellation() async throws {
        let kept = kept()
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let task = Task {
            try await kept.run { connection in
                begin.yield()
                try connection.block()
            }
        }
        for await _ in begun { break }
        task.cancel()
        try await task.value
        // A signal that was left behind would end this wait as well.
        let outcome = try await kept.run { connection in
            try connection.wake.wait(
                -1, reading: false, writing: false, until: Deadline(after: .milliseconds(20)))
        }
        #expect(outcome.isEmpty)
    }

    @Test("refuses work after it was closed")
    func closedConnection() async throws {
        let kept = kept()
        _ = try await kept.run { $0.number }
        await kept.close()
        #expect(server.state.withLock { $0.closed } == 1)
        await #expect(throws: KeptConnectionClosed()) { try await kept.run { $0.number } }
    }
}
