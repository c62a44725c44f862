extension DatabaseObservation {
    /// The values, each with its cause: why the data changed, and which records changed. The first
    /// value has no cause.
    public var withChanges:
        some AsyncSequence<(value: Value, change: DatabaseChange?), any Error> & Sendable
    {
        Changes(observation: self)
    }

    /// The values, with a failure in place of each failed fetch. A failed fetch does not end the
    /// sequence; the next change fetches again.
    public var results: some AsyncSequence<Result<Value, any Error>, Never> & Sendable {
        Results(observation: self)
    }

    /// An observation's values with their causes.
    struct Changes: AsyncSequence, Sendable {
        fileprivate let observation: DatabaseObservation<Value>

        func makeAsyncIterator() -> Iterator {
            Iterator(fetches: ObservedFetches(of: observation))
        }

        /// A running observation.
        struct Iterator: AsyncIteratorProtocol {
            fileprivate var fetches: ObservedFetches<Value>

            /// Waits for a relevant change, and fetches.
            /// - Returns: The value; nil if the task was cancelled or the database closed.
            /// - Throws: The error of the fetch; the loop then ends.
            mutating func next(
                isolation: isolated (any Actor)? = #isolation
            ) async throws -> (value: Value, change: DatabaseChange?)? {
                try await fetches.nextOrEnd()
            }
        }
    }

    /// An observation's values and failures.
    struct Results: AsyncSequence, Sendable {
        fileprivate let observation: DatabaseObservation<Value>

        func makeAsyncIterator() -> Iterator {
            Iterator(fetches: ObservedFetches(of: observation))
        }

        /// A running observation.
        struct Iterator: AsyncIteratorProtocol {
            fileprivate var fetches: ObservedFetches<Value>

            /// Waits for a relevant change, and fetches.
            /// - Returns: The value or failure; nil if the task was cancelled or the database
            ///   closed.
            mutating func next(
                isolation: isolated (any Actor)? = #isolation
            ) async -> Result<Value, any Error>? {
                do {
                    return try await fetches.next().map { .success($0.value) }
                } catch {
                    return .failure(error)
                }
            }
        }
    }
}
