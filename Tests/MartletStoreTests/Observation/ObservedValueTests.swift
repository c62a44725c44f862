import MartletStore
import Observation
import Testing

/// An app's own model, beside the store's types: their names must not meet the macro's.
@MainActor @Observable
private final class Screen {
    var title = ""
}

@MainActor @Suite("Observed values", .timeLimit(.minutes(5)))
struct ObservedValueTests {
    /// Waits until what `body` reads is another, or the test's time is over.
    private func change(_ body: @escaping @MainActor () -> Void) async {
        let (changed, change) = AsyncStream<Void>.makeStream()
        withObservationTracking(body) { change.yield() }
        for await _ in changed { return }
    }

    @Test("a property follows a query, over failures too, for as long as somebody holds it")
    func follows() async throws {
        let database = try await ObservedDatabase()
        let players = database.players
        do {
            let counted = database.pool.observe { context in
                let count = try players.count(in: context)
                if count == 2 { throw Broken() }
                return count
            }
            let observed = ObservedValue(-1, of: counted)
            #expect(observed.value == -1)
            await change { _ = observed.value }
            #expect(observed.value == 0)
            try await database.run("INSERT INTO players(name) VALUES ('Ada')")
            if observed.value == 0 { await change { _ = observed.value } }
            #expect(observed.value == 1)
            #expect(observed.change?.causes == .local)
            try await database.run("INSERT INTO players(name) VALUES ('Bob')")
            if observed.error == nil { await change { _ = observed.error } }
            #expect(observed.error is Broken)
            #expect(observed.value == 1)
            try await database.run("DELETE FROM players")
            if observed.value == 1 { await change { _ = observed.value } }
            #expect(observed.value == 0)
            #expect(observed.error == nil)
        }
        try await database.untilObserved(by: 0)
    }

    @Test("an app's own observable classes compile beside the store")
    func ownModel() async {
        let screen = Screen()
        await withCheckedContinuation { continuation in
            withObservationTracking {
                _ = screen.title
            } onChange: {
                continuation.resume()
            }
            screen.title = "Roster"
        }
        #expect(screen.title == "Roster")
    }
}
