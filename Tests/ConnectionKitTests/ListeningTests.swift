import ConnectionKit
import Synchronization
import Testing
import Waiting

@Suite("Listening")
struct ListeningTests {
    private let server = FakeServer()

    /// Hears what `server.messages` says; an empty message is the loss of the connection.
    private func events() -> AsyncStream<ListeningEvent<String>> {
        Listening.events(
            label: "test", pace: server.pace,
            make: { [server] in try server.connect() },
            next: { [server] connection, limit in
                let messages = server.state.withLock { state in
                    defer { state.messages.removeAll() }
                    state.asked += 1
                    return state.messages
                }
                if messages == [""] { throw FakeError(mayPass: true) }
                if messages.isEmpty {
                    _ = try connection.wake.wait(
                        -1, reading: false, writing: false,
                        until: Deadline(after: limit ?? .milliseconds(5)))
                }
                return messages
            })
    }

    private func say(_ messages: [String]) {
        server.state.withLock { $0.messages = messages }
    }

    @Test("says when it listens, what it hears, and when it was lost", .timeLimit(.minutes(5)))
    func orderOfNotices() async {
        var seen: [String] = []
        for await event in events() {
            switch event {
            case .listening:
                seen.append("listening")
                if seen.count > 1 { break }
                say(["one", "two"])
                continue
            case .message(let message):
                seen.append(message)
                if message == "two" { say([""]) }
                continue
            case .lost:
                seen.append("lost")
                continue
            }
            break
        }
        #expect(seen == ["listening", "one", "two", "lost", "listening"])
    }

    @Test("ends with an error that does not pass", .timeLimit(.minutes(5)))
    func fatal() async {
        server.state.withLock {
            $0.refusals = [FakeError(mayPass: true), FakeError(mayPass: false)]
        }
        var losses: [FakeError] = []
        for await event in events() {
            if case .lost(let error as FakeError) = event { losses.append(error) }
        }
        #expect(losses == [FakeError(mayPass: true), FakeError(mayPass: false)])
        #expect(server.state.withLock { $0.attempts } == 2)
    }

    @Test("who was too slow is told to look for themselves", .timeLimit(.minutes(5)))
    func overflow() async throws {
        say((0..<(Listening.longestQueue * 2)).map(String.init))
        let events = events()
        // Until all was said, nobody listens.
        try await waitUntil("all was said") { server.state.withLock { $0.asked >= 2 } }
        var messages = 0
        var notes = 0
        for await event in events {
            switch event {
            case .listening: notes += 1
            case .message: messages += 1
            case .lost: Issue.record("nothing was lost")
            }
            if notes == 2 { break }
        }
        #expect(messages == Listening.longestQueue - 1)
    }

    @Test("whoever stops reading ends the connection", .timeLimit(.minutes(5)))
    func end() async throws {
        for await _ in events() { break }
        try await waitUntil("the connection is closed") { server.state.withLock { $0.closed > 0 } }
    }
}
