internal import Synchronization

/// Hands every commit's changes to those who wait for them.
///
/// A subscriber that is busy gets what happened meanwhile taken together: one change, however many
/// commits it stands for.
public final class ChangeHub: Sendable {
    private struct Subscriber {
        /// What counts; nil for everything.
        var region: DatabaseRegion?
        /// What has happened and was not looked at yet.
        var pending: DatabaseChange?
        /// What the read under way will show.
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
    /// The open drafts, which hear of changes before they are committed.
    package let drafts = DraftBoard()

    package init() {}

    /// Tells `handler` when the first subscriber comes and when the last one goes. It is called
    /// under the hub's lock, so that calls come in order, and must not call the hub.
    package func onDemand(_ handler: @escaping @Sendable (Bool) -> Void) {
        state.withLock { state in
            state.onDemand = handler
            if !state.subscribers.isEmpty { handler(true) }
        }
    }

    /// Whether anyone listens.
    package var isWanted: Bool { state.withLock { !$0.subscribers.isEmpty } }

    /// Those who listen.
    package var subscriberCount: Int { state.withLock { $0.subscribers.count } }

    /// Hands a change to those whose region it touches.
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
    /// A new subscriber: everything counts until it has a region.
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

    /// Waits until something that counts has happened. One waits at a time.
    /// - Returns: False when the database was closed or the waiting task cancelled.
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

    /// Takes what has happened since the last call.
    func take(_ number: Int) -> DatabaseChange? {
        state.withLock { state in
            defer { state.subscribers[number]?.pending = nil }
            return state.subscribers[number]?.pending
        }
    }

    /// Notes that a read begins. What was told of until now it will show; from now on everything
    /// counts, since what it will read is not known.
    func beginReading(_ number: Int) {
        state.withLock { state in
            guard var subscriber = state.subscribers[number] else { return }
            if let pending = subscriber.pending { subscriber.seen.add(pending) }
            subscriber.pending = nil
            subscriber.region = nil
            state.subscribers[number] = subscriber
        }
    }

    /// Notes what the read has read: from now on only changes to that count, and what came
    /// meanwhile is judged by it too.
    /// - Returns: What led to the read, taken together; nil for the first.
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
