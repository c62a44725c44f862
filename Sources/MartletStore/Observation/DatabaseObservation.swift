/// The values of a query over time: the first at once, then one after each change that may affect
/// it.
///
/// The observation fetches only when the consumer asks for the next value. So a busy consumer gets
/// the newest value, and the values that it skipped are never computed. A value is always of one
/// moment, between two saves. Each fetch determines again which changes are relevant: if the query
/// found a record by its key, changes to that record; otherwise, changes to the tables that it
/// read. A value may equal the one before (`removeDuplicates()`).
///
/// ```swift
/// for try await players in database.observe({ try players.all(in: $0) }) { show(players) }
/// ```
///
/// Each loop over it observes independently. The observation ends when the loop is left, when its
/// task is cancelled, or when the database is closed. A failed fetch ends the loop with its error;
/// to continue after failures, use `results`.
public struct DatabaseObservation<Value: Sendable>: AsyncSequence, Sendable {
    let database: any DatabaseAccess
    let fetch: @Sendable (ReadContext) throws -> Value
    /// Returns whether a value need not be shown after another one; nil to show all.
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

    /// A running observation.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var fetches: ObservedFetches<Value>

        /// Waits for a relevant change, and fetches.
        /// - Returns: The value; nil if the task was cancelled or the database closed.
        /// - Throws: The error of the fetch; the loop then ends.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async throws -> Value? {
            try await fetches.nextOrEnd()?.value
        }

        /// Waits for a relevant change, and fetches.
        /// - Throws: The error of the fetch; the loop then ends.
        public mutating func next() async throws -> Value? {
            try await fetches.nextOrEnd()?.value
        }
    }
}

extension DatabaseObservation where Value: Equatable {
    /// Returns the same observation without values that equal the one before.
    public func removeDuplicates() -> DatabaseObservation {
        DatabaseObservation(database: database, isSame: { $0 == $1 }, fetch: fetch)
    }
}
