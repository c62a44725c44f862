extension DatabaseObservation {
    /// The values, each with what led to it: why the data changed, and which records did. The first
    /// value has no change.
    public var withChanges: Changes { Changes(observation: self) }

    /// The values, and failures in place of values: a fetch that fails does not end it, the next
    /// change fetches again.
    public var results: Results { Results(observation: self) }

    /// An observation's values with what led to them.
    public struct Changes: AsyncSequence, Sendable {
        /// A value and what led to it; nil for the first value.
        public typealias Element = (value: Value, change: DatabaseChange?)

        fileprivate let observation: DatabaseObservation<Value>

        public func makeAsyncIterator() -> Iterator {
            Iterator(fetches: ObservedFetches(of: observation))
        }

        /// One observation under way.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var fetches: ObservedFetches<Value>

            /// Waits for a change that matters, and fetches.
            /// - Returns: nil when the task was cancelled or the database closed.
            /// - Throws: What the fetch throws; the loop then ends.
            public mutating func next(
                isolation: isolated (any Actor)? = #isolation
            ) async throws -> Element? {
                try await fetches.nextOrEnd()
            }

            /// Waits for a change that matters, and fetches.
            public mutating func next() async throws -> Element? {
                try await fetches.nextOrEnd()
            }
        }
    }

    /// An observation's values and failures.
    public struct Results: AsyncSequence, Sendable {
        /// A value, or why there is none now.
        public typealias Element = Result<Value, any Error>
        /// It does not fail; its elements may tell of failures.
        public typealias Failure = Never

        fileprivate let observation: DatabaseObservation<Value>

        public func makeAsyncIterator() -> Iterator {
            Iterator(fetches: ObservedFetches(of: observation))
        }

        /// One observation under way.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var fetches: ObservedFetches<Value>

            /// Waits for a change that matters, and fetches.
            /// - Returns: nil when the task was cancelled or the database closed.
            public mutating func next(
                isolation: isolated (any Actor)? = #isolation
            ) async -> Element? {
                do {
                    return try await fetches.next().map { .success($0.value) }
                } catch {
                    return .failure(error)
                }
            }

            /// Waits for a change that matters, and fetches.
            public mutating func next() async -> Element? {
                await next(isolation: nil)
            }
        }
    }
}
