internal import Synchronization

/// Limits the number of answers that are made from the log and handed to their connections at a
/// time.
///
/// An answer may have megabytes, and hundreds of requests may want one. If each answer were made as
/// soon as a thread is free, finished answers would wait in memory behind those still to be made.
/// Parties take turns: a party with many requests delays each request of another party by one
/// answer.
final class AnswerRoom: Sendable {
    /// The number of places: a few for each processor, because some answers are made while others
    /// are handed over.
    static let capacity = 8

    private final class Waiter: Sendable {
        let resumed = Mutex<CheckedContinuation<Void, any Error>?>(nil)

        /// Resumes the waiting task; false if it was resumed before.
        func resume(throwing error: (any Error)? = nil) -> Bool {
            let continuation = resumed.withLock { resumed in
                defer { resumed = nil }
                return resumed
            }
            guard let continuation else { return false }
            if let error { continuation.resume(throwing: error) } else { continuation.resume() }
            return true
        }
    }

    private struct State {
        var free = AnswerRoom.capacity
        var waiting = PartyTurns<Waiter>()
    }

    private let state = Mutex(State())

    /// The number of requests that wait for a place.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Waits for a place.
    ///
    /// - Throws: `CancellationError` if the client goes away meanwhile.
    fileprivate func take(_ party: String) async throws {
        try Task.checkCancellation()
        let waiter = Waiter()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                waiter.resumed.withLock { $0 = continuation }
                let isFree = state.withLock { state in
                    guard state.free > 0 else {
                        state.waiting.append(waiter, of: party)
                        return false
                    }
                    state.free -= 1
                    return true
                }
                if isFree {
                    if !waiter.resume() { giveBack() }
                } else if Task.isCancelled {
                    _ = waiter.resume(throwing: CancellationError())
                }
            }
        } onCancel: {
            _ = waiter.resume(throwing: CancellationError())
        }
    }

    /// Hands a place to the next waiter in turn.
    fileprivate func giveBack() {
        while true {
            let next = state.withLock { state in
                let next = state.waiting.first
                if next == nil { state.free += 1 } else { state.waiting.removeFirst() }
                return next
            }
            guard let next, !next.resume() else { return }
        }
    }
}

/// A request's place in an `AnswerRoom`. The claim holds it from `take(in:)` until `giveBack()`, or
/// until nobody holds the claim.
final class AnswerClaim: Sendable {
    private let party: String
    /// The room in which the claim has a place; nil if it has none.
    private let room = Mutex<AnswerRoom?>(nil)

    /// Makes a claim without a place.
    ///
    /// - Parameter party: The party that sent the request.
    init(of party: String) { self.party = party }

    /// Waits for a place, unless the claim already has one in the room. It first gives up a place
    /// in another room. Only one task at a time may call this.
    ///
    /// - Throws: `CancellationError` if the client goes away meanwhile.
    func take(in wanted: AnswerRoom) async throws {
        guard room.withLock({ $0 !== wanted }) else { return }
        giveBack()
        try await wanted.take(party)
        room.withLock { $0 = wanted }
    }

    /// Gives the place back, if the claim has one.
    func giveBack() {
        let left = room.withLock { room in
            defer { room = nil }
            return room
        }
        left?.giveBack()
    }

    deinit { giveBack() }
}
