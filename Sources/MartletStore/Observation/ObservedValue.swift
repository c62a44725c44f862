#if canImport(Observation)
    public import Observation

    /// The newest value of an observation, for user interfaces that follow properties: it observes
    /// from its making until nobody holds it.
    ///
    /// ```swift
    /// let players = ObservedValue([], of: roster.observePlayers())
    /// // in a view: List(players.value) { … }
    /// ```
    @MainActor @Observable
    public final class ObservedValue<Value: Sendable> {
        /// The newest value; the one given at first until the first fetch has ended.
        public private(set) var value: Value
        /// Why the last fetch failed; nil when it did not. The value is then the one before.
        public private(set) var error: (any Error)?
        /// What led to the value; nil for the first.
        public private(set) var change: DatabaseChange?
        @ObservationIgnored private var task: ObservingTask?

        /// - Parameters:
        ///   - initial: What to show until the first fetch has ended.
        ///   - observation: Where values come from.
        public init(_ initial: Value, of observation: DatabaseObservation<Value>) {
            value = initial
            // Holds this object only while it hands a value over.
            task = ObservingTask(
                Task { [weak self] in
                    var fetches = ObservedFetches(of: observation)
                    while !Task.isCancelled {
                        do {
                            guard let next = try await fetches.next() else { return }
                            self?.take(next.value, next.change)
                        } catch {
                            self?.error = error
                        }
                    }
                })
        }

        private func take(_ value: Value, _ change: DatabaseChange?) {
            self.value = value
            self.change = change
            error = nil
        }
    }

    /// Cancels a task when it goes.
    private final class ObservingTask: Sendable {
        private let task: Task<Void, Never>

        init(_ task: Task<Void, Never>) {
            self.task = task
        }

        deinit {
            task.cancel()
        }
    }
#endif
