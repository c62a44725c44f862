#if canImport(Combine)
    public import Combine
    internal import Synchronization

    extension DatabaseObservation {
        /// The values as a Combine publisher. It delivers values on the threads that run tasks, and
        /// fetches only on demand. It fails with the error of the fetch, and finishes when the
        /// database is closed.
        public var publisher: ObservationPublisher<Value> {
            ObservationPublisher(observation: self)
        }
    }

    /// An observation as a Combine publisher.
    public struct ObservationPublisher<Value: Sendable>: Publisher {
        /// A value of the observation.
        public typealias Output = Value
        /// The error of the fetch.
        public typealias Failure = any Error

        let observation: DatabaseObservation<Value>

        /// Begins to observe for a subscriber; Combine calls it.
        public func receive<Downstream: Subscriber>(subscriber: Downstream)
        where Downstream.Input == Value, Downstream.Failure == any Error {
            let subscription = ObservationSubscription<Value>(
                receive: { subscriber.receive($0) },
                complete: { subscriber.receive(completion: $0) })
            subscriber.receive(subscription: subscription)
            subscription.start(observation)
        }
    }

    /// Fetches as many values as the subscriber asks for.
    ///
    /// `@unchecked Sendable`: only one task calls the subscriber, and the lock protects the rest.
    private final class ObservationSubscription<Value: Sendable>: Combine.Subscription,
        @unchecked Sendable
    {
        private struct State {
            var demand = Subscribers.Demand.none
            var waiting: CheckedContinuation<Void, Never>?
            var task: Task<Void, Never>?
            var isCancelled = false
        }

        private let receive: (Value) -> Subscribers.Demand
        private let complete: (Subscribers.Completion<any Error>) -> Void
        private let state = Mutex(State())

        init(
            receive: @escaping (Value) -> Subscribers.Demand,
            complete: @escaping (Subscribers.Completion<any Error>) -> Void
        ) {
            self.receive = receive
            self.complete = complete
        }

        func start(_ observation: DatabaseObservation<Value>) {
            let task = Task { await self.run(observation) }
            let isCancelled = state.withLock { state in
                state.task = task
                return state.isCancelled
            }
            if isCancelled { task.cancel() }
        }

        private func run(_ observation: DatabaseObservation<Value>) async {
            var values = observation.makeAsyncIterator()
            while await isAskedFor() {
                do {
                    guard let value = try await values.next() else { break }
                    let more = receive(value)
                    state.withLock { state in
                        state.demand -= 1
                        state.demand += more
                    }
                } catch {
                    if !Task.isCancelled { complete(.failure(error)) }
                    return
                }
            }
            if !Task.isCancelled { complete(.finished) }
        }

        /// Waits until the subscriber asks for a value. Returns false if the subscription was
        /// cancelled.
        private func isAskedFor() async -> Bool {
            await withCheckedContinuation { continuation in
                let isNow = state.withLock { state in
                    if state.isCancelled || state.demand > .none { return true }
                    state.waiting = continuation
                    return false
                }
                if isNow { continuation.resume() }
            }
            return !state.withLock(\.isCancelled)
        }

        func request(_ demand: Subscribers.Demand) {
            let waiting = state.withLock { state in
                state.demand += demand
                defer { state.waiting = nil }
                return state.waiting
            }
            waiting?.resume()
        }

        func cancel() {
            let (waiting, task) = state.withLock { state in
                state.isCancelled = true
                defer { state.waiting = nil }
                return (state.waiting, state.task)
            }
            task?.cancel()
            waiting?.resume()
        }
    }
#endif
