import ConnectionKit
import Synchronization

/// A server in memory, whose clock stands still but when somebody waits for it.
final class FakeServer: Sendable {
    struct State {
        var now: Duration = .zero
        var waits: [Duration] = []
        /// What the next attempts to connect end with; after them, with success.
        var refusals: [FakeError] = []
        var attempts = 0
        var opened = 0
        var closed = 0
        /// Connections with lower numbers have been hung up.
        var lostBelow = 0
        var messages: [String] = []
        /// How often somebody asked for messages.
        var asked = 0
    }

    let state = Mutex(State())

    /// Time passes by waiting; the numbers are the highest, so that waits are whole steps.
    var pace: Pace {
        Pace(
            now: { self.state.withLock { $0.now } },
            sleep: { duration in
                try Task.checkCancellation()
                self.state.withLock {
                    $0.now += duration
                    $0.waits.append(duration)
                }
                await Task.yield()
            }, random: { .max })
    }

    func connect() throws -> FakeConnection {
        let number = try state.withLock { state in
            state.attempts += 1
            if !state.refusals.isEmpty { throw state.refusals.removeFirst() }
            state.opened += 1
            return state.opened
        }
        return try FakeConnection(self, number)
    }

    func hangUp() {
        state.withLock { $0.lostBelow = $0.opened + 1 }
    }
}

struct FakeError: Error, Equatable {
    let mayPass: Bool
}

final class FakeConnection: Connectable {
    let wake: Wake
    let number: Int
    private let server: FakeServer

    init(_ server: FakeServer, _ number: Int) throws {
        wake = try Wake()
        self.server = server
        self.number = number
    }

    func isUsable() -> Bool {
        server.state.withLock { $0.lostBelow <= number }
    }

    func close() {
        server.state.withLock { $0.closed += 1 }
    }

    static func mayPass(_ error: any Error) -> Bool {
        (error as? FakeError)?.mayPass ?? false
    }

    /// Blocks until it is woken.
    func block() throws {
        // Standard input is no socket of anybody's; only the signal ends this.
        _ = try wake.wait(-1, reading: false, writing: false, until: nil)
    }
}
