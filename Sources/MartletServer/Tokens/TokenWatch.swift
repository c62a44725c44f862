internal import Synchronization
internal import SystemKit

/// Tells thousands of listeners whether a token may have changed, and reads the file once a second
/// at most.
final class TokenWatch: Sendable {
    private struct State {
        var generation: Int64 = -1
        var checked: ContinuousClock.Instant?
    }

    private let state = Mutex(State())

    /// Returns a number that changes with the tokens. It is at most a second old.
    func generation(_ tokens: Confined<TokenAuthenticator>) async throws -> Int64 {
        let now = ContinuousClock.now
        let known: Int64? = state.withLock { state in
            if let checked = state.checked, now - checked < .seconds(1) { return state.generation }
            // Calls that ask during this look get the former number.
            if state.checked != nil { state.checked = now }
            return nil
        }
        if let known { return known }
        do {
            let found = try await tokens.run { try $0.generation() }
            state.withLock { $0 = State(generation: found, checked: now) }
            return found
        } catch {
            state.withLock { $0.checked = nil }
            throw error
        }
    }
}
