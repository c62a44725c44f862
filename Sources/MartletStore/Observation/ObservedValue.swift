#if canImport(Observation)
    public import Observation

    /// The newest value of an observation, for user interfaces that follow properties. It observes
    /// from its creation until it is released.
    ///
    /// ```swift
    /// let players = ObservedValue([], of: roster.observePlayers())
    /// // in a view: List(players.value) { … }
    /// ```
    @MainActor @Observable
    public final class ObservedValue<Value: Sendable> {
        /// The newest value; the initial one until the first fetch has ended.
        public private(set) var value: Value
        /// The error of the last fetch; nil if it succeeded. After an error, the value is the one
        /// before.
        public private(set) var error: (any Error)?
        /// The change that caused the value; nil for the first.
        public private(set) var change: DatabaseChange?
        @ObservationIgnored private var task: ObservingTask?

        /// Begins to observe.
        /// - Parameters:
        ///   - initial: The value until the first fetch has ended.
        ///   - observation: The source of the values.
        public init(_ initial: Value, of observation: DatabaseObservation<Value>) {
            value = initial
            // The task holds this object only while it sets a value.
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

    /// Cancels a task when it is released.
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
