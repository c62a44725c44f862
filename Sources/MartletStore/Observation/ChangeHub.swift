internal import Synchronization

/// Hands every commit's changes to those who wait for them.
///
/// A subscriber that is busy gets what happened meanwhile taken together: one change, however many
/// commits it stands for.
public final class ChangeHub: Sendable {
    struct Subscriber {
        var region: DatabaseRegion?
        var pending: DatabaseChange?
        var waiting: CheckedContinuation<DatabaseChange?, Never>?
    }

    private struct State {
        var subscribers: [Int: Subscriber] = [:]
        var last = 0
        var isFinished = false
        var onDemand: (@Sendable (Bool) -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// Tells `handler` when the first subscriber comes and when the last one goes.
    package func onDemand(_ handler: @escaping @Sendable (Bool) -> Void) {
        let isWanted = state.withLock { state in
            state.onDemand = handler
            return !state.subscribers.isEmpty
        }
        if isWanted { handler(true) }
    }

    /// Whether anyone listens.
    package var isWanted: Bool { state.withLock { !$0.subscribers.isEmpty } }

    /// Hands a change to those whose region it touches.
    package func publish(_ change: DatabaseChange) {
        let woken = state.withLock { state in
            var woken: [(CheckedContinuation<DatabaseChange?, Never>, DatabaseChange)] = []
            for number in state.subscribers.keys {
                guard var subscriber = state.subscribers[number],
                    subscriber.region?.isTouched(by: change) ?? true
                else { continue }
                if let waiting = subscriber.waiting {
                    subscriber.waiting = nil
                    woken.append((waiting, change))
                } else if subscriber.pending?.add(change) == nil {
                    subscriber.pending = change
                }
                state.subscribers[number] = subscriber
            }
            return woken
        }
        for (waiting, change) in woken { waiting.resume(returning: change) }
    }

    /// Ends all subscriptions.
    package func finish() {
        let waiting = state.withLock { state in
            state.isFinished = true
            let waiting = state.subscribers.values.compactMap(\.waiting)
            for number in state.subscribers.keys { state.subscribers[number]?.waiting = nil }
            return waiting
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    /// A new subscriber: everything counts until it has a region.
    func subscribe() -> Int {
        let (number, handler) = state.withLock { state in
            state.last += 1
            state.subscribers[state.last] = Subscriber()
            return (state.last, state.subscribers.count == 1 ? state.onDemand : nil)
        }
        handler?(true)
        return number
    }

    func unsubscribe(_ number: Int) {
        let (waiting, handler) = state.withLock { state in
            let waiting = state.subscribers.removeValue(forKey: number)?.waiting
            return (waiting, state.subscribers.isEmpty ? state.onDemand : nil)
        }
        waiting?.resume(returning: nil)
        handler?(false)
    }

    /// From now on only changes that touch the region count; what came before is judged by it too.
    func narrow(_ number: Int, to region: DatabaseRegion) {
        state.withLock { state in
            state.subscribers[number]?.region = region
            if let pending = state.subscribers[number]?.pending, !region.isTouched(by: pending) {
                state.subscribers[number]?.pending = nil
            }
        }
    }

    /// The next change, taken together with all that came meanwhile; nil when the database was
    /// closed or the waiting task cancelled. One waits at a time.
    func next(_ number: Int) async -> DatabaseChange? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (answer, isNow) = state.withLock { state -> (DatabaseChange?, Bool) in
                    guard !state.isFinished, !Task.isCancelled,
                        state.subscribers[number] != nil
                    else { return (nil, true) }
                    if let pending = state.subscribers[number]?.pending {
                        state.subscribers[number]?.pending = nil
                        return (pending, true)
                    }
                    state.subscribers[number]?.waiting = continuation
                    return (nil, false)
                }
                if isNow { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { state in
                let waiting = state.subscribers[number]?.waiting
                state.subscribers[number]?.waiting = nil
                return waiting
            }
            waiting?.resume(returning: nil)
        }
    }
}
