/// A query's values over time: the first at once, then one after each change that may show in it.
///
/// Nothing is fetched until the consumer asks for the next value, so a consumer that is busy misses
/// no state that matters: it gets the newest, and what it skipped is never computed. A value is
/// always of one moment, between two saves. Which changes matter is learned anew at every fetch:
/// for what was found by its key, changes to that record; for all else, changes to the tables read.
/// A value may be the same as the one before (`removeDuplicates()`).
///
/// ```swift
/// for try await players in database.observe({ try players.all(in: $0) }) { show(players) }
/// ```
///
/// Every loop over it observes for itself. Leaving the loop or cancelling its task ends that;
/// closing the database ends the loop. A fetch that fails ends the loop with its error; use
/// `results` to go on.
public struct DatabaseObservation<Value: Sendable>: AsyncSequence, Sendable {
    let database: any DatabaseAccess
    let fetch: @Sendable (ReadContext) throws -> Value
    /// Whether a value needs no showing after another; nil to show all.
    let isSame: (@Sendable (Value, Value) -> Bool)?

    init(
        database: any DatabaseAccess,
        isSame: (@Sendable (Value, Value) -> Bool)? = nil,
        fetch: @escaping @Sendable (ReadContext) throws -> Value
    ) {
        self.database = database
        self.isSame = isSame
        self.fetch = fetch
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(fetches: ObservedFetches(of: self))
    }

    /// One observation under way.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var fetches: ObservedFetches<Value>

        /// Waits for a change that matters, and fetches.
        /// - Returns: nil when the task was cancelled or the database closed.
        /// - Throws: What the fetch throws; the loop then ends.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async throws -> Value? {
            try await fetches.nextOrEnd()?.value
        }

        /// Waits for a change that matters, and fetches.
        public mutating func next() async throws -> Value? {
            try await fetches.nextOrEnd()?.value
        }
    }
}

extension DatabaseObservation where Value: Equatable {
    /// The same, with values left out that are equal to the one before.
    public func removeDuplicates() -> DatabaseObservation {
        DatabaseObservation(database: database, isSame: { $0 == $1 }, fetch: fetch)
    }
}
