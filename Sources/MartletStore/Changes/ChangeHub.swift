internal import Synchronization

/// Delivers the changes of every commit to its subscribers.
///
/// A subscriber that is busy later receives one change that combines all commits since.
public final class ChangeHub: Sendable {
    private struct Subscriber {
        /// The region whose changes count; nil if every change counts.
        var region: DatabaseRegion?
        /// The changes that the subscriber has not yet taken.
        var pending: DatabaseChange?
        /// The changes that the current read will show.
        var seen: DatabaseChange?
        var waiting: CheckedContinuation<Bool, Never>?
    }

    private struct State {
        var subscribers: [Int: Subscriber] = [:]
        var last = 0
        var isFinished = false
        var onDemand: (@Sendable (Bool) -> Void)?
    }

    private let state = Mutex(State())
    /// The open drafts, which review changes before they are committed.
    package let drafts = DraftBoard()

    package init() {}

    /// Sets a handler that is called with true when the first subscriber arrives, and with false
    /// when the last one leaves. It is called under the hub's lock, so that calls are in order, and
    /// must not call the hub.
    package func onDemand(_ handler: @escaping @Sendable (Bool) -> Void) {
        state.withLock { state in
            state.onDemand = handler
            if !state.subscribers.isEmpty { handler(true) }
        }
    }

    /// Whether there is a subscriber.
    package var isWanted: Bool { state.withLock { !$0.subscribers.isEmpty } }

    /// The number of subscribers.
    package var subscriberCount: Int { state.withLock { $0.subscribers.count } }

    /// Delivers a change to the subscribers whose region it touches.
    package func publish(_ change: DatabaseChange) {
        let woken = state.withLock { state in
            var woken: [CheckedContinuation<Bool, Never>] = []
            for number in state.subscribers.keys {
                guard var subscriber = state.subscribers[number],
                    subscriber.region?.isTouched(by: change) ?? true
                else { continue }
                subscriber.pending.add(change)
                if let waiting = subscriber.waiting {
                    subscriber.waiting = nil
                    woken.append(waiting)
                }
                state.subscribers[number] = subscriber
            }
            return woken
        }
        for waiting in woken { waiting.resume(returning: true) }
    }

    /// Ends all subscriptions.
    package func finish() {
        let waiting = state.withLock { state in
            state.isFinished = true
            let waiting = state.subscribers.values.compactMap(\.waiting)
            for number in state.subscribers.keys { state.subscribers[number]?.waiting = nil }
            return waiting
        }
        for continuation in waiting { continuation.resume(returning: false) }
    }
}

// MARK: - For subscribers

extension ChangeHub {
    /// Adds a subscriber. Every change counts for it until it has a region.
    /// - Returns: The subscriber's number.
    func subscribe() -> Int {
        state.withLock { state in
            state.last += 1
            state.subscribers[state.last] = Subscriber()
            if state.subscribers.count == 1, !state.isFinished { state.onDemand?(true) }
            return state.last
        }
    }

    func unsubscribe(_ number: Int) {
        let waiting = state.withLock { state in
            let waiting = state.subscribers.removeValue(forKey: number)?.waiting
            if state.subscribers.isEmpty { state.onDemand?(false) }
            return waiting
        }
        waiting?.resume(returning: false)
    }

    /// Waits until there is a change that counts. A subscriber may wait only once at a time.
    /// - Returns: False if the database was closed, the subscription ended, or the waiting task was
    ///   cancelled.
    func wait(
        _ number: Int, isolation: isolated (any Actor)? = #isolation
    ) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    guard !state.isFinished, !Task.isCancelled,
                        state.subscribers[number] != nil
                    else { return false }
                    if state.subscribers[number]?.pending != nil { return true }
                    state.subscribers[number]?.waiting = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { state in
                let waiting = state.subscribers[number]?.waiting
                state.subscribers[number]?.waiting = nil
                return waiting
            }
            waiting?.resume(returning: false)
        }
    }

    /// Returns the changes since the last call, combined, and forgets them; nil if there are none.
    func take(_ number: Int) -> DatabaseChange? {
        state.withLock { state in
            defer { state.subscribers[number]?.pending = nil }
            return state.subscribers[number]?.pending
        }
    }

    /// Marks the start of a read. The read will show all changes published so far. Until its region
    /// is known, every later change counts.
    func beginReading(_ number: Int) {
        state.withLock { state in
            guard var subscriber = state.subscribers[number] else { return }
            if let pending = subscriber.pending { subscriber.seen.add(pending) }
            subscriber.pending = nil
            subscriber.region = nil
            state.subscribers[number] = subscriber
        }
    }

    /// Marks the end of a read. From now on, only changes in the region count. A pending change
    /// that does not touch it is dropped.
    /// - Returns: The changes that led to the read, combined; nil if there were none.
    func endReading(_ number: Int, _ region: DatabaseRegion) -> DatabaseChange? {
        state.withLock { state in
            guard var subscriber = state.subscribers[number] else { return nil }
            let seen = subscriber.seen
            subscriber.seen = nil
            subscriber.region = region
            if let pending = subscriber.pending, !region.isTouched(by: pending) {
                subscriber.pending = nil
            }
            state.subscribers[number] = subscriber
            return seen
        }
    }
}
