extension DatabaseObservation {
    /// The values, each with its cause: why the data changed, and which records changed. The first
    /// value has no cause.
    public var withChanges: Changes { Changes(observation: self) }

    /// The values, with a failure in place of each failed fetch. A failed fetch does not end the
    /// sequence; the next change fetches again.
    public var results: Results { Results(observation: self) }

    /// An observation's values with their causes.
    public struct Changes: AsyncSequence, Sendable {
        /// A value and the change that caused it; the change is nil for the first value.
        public typealias Element = (value: Value, change: DatabaseChange?)

        fileprivate let observation: DatabaseObservation<Value>

        public func makeAsyncIterator() -> Iterator {
            Iterator(fetches: ObservedFetches(of: observation))
        }

        /// A running observation.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var fetches: ObservedFetches<Value>

            /// Waits for a relevant change, and fetches.
            /// - Returns: The value; nil if the task was cancelled or the database closed.
            /// - Throws: The error of the fetch; the loop then ends.
            public mutating func next(
                isolation: isolated (any Actor)? = #isolation
            ) async throws -> Element? {
                try await fetches.nextOrEnd()
            }

            /// Waits for a relevant change, and fetches.
            /// - Throws: The error of the fetch; the loop then ends.
            public mutating func next() async throws -> Element? {
                try await fetches.nextOrEnd()
            }
        }
    }

    /// An observation's values and failures.
    public struct Results: AsyncSequence, Sendable {
        /// A value, or the reason why there is none now.
        public typealias Element = Result<Value, any Error>
        /// The sequence does not fail; its elements may be failures.
        public typealias Failure = Never

        fileprivate let observation: DatabaseObservation<Value>

        public func makeAsyncIterator() -> Iterator {
            Iterator(fetches: ObservedFetches(of: observation))
        }

        /// A running observation.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var fetches: ObservedFetches<Value>

            /// Waits for a relevant change, and fetches.
            /// - Returns: The value or failure; nil if the task was cancelled or the database
            ///   closed.
            public mutating func next(
                isolation: isolated (any Actor)? = #isolation
            ) async -> Element? {
                do {
                    return try await fetches.next().map { .success($0.value) }
                } catch {
                    return .failure(error)
                }
            }

            /// Waits for a relevant change, and fetches.
            /// - Returns: The value or failure; nil if the task was cancelled or the database
            ///   closed.
            public mutating func next() async -> Element? {
                await next(isolation: nil)
            }
        }
    }
}
