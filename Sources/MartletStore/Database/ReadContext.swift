public import MartletCore
public import MartletProtocol
internal import SQLiteKit

/// A view of the data at one moment. Valid inside the closure it was given to.
public final class ReadContext {
    private let store: LocalStore

    public init(store: LocalStore) {
        self.store = store
    }

    public var schema: Schema { store.schema }

    /// A record's attributes; nil where there is none. A temporary id finds the record for ever.
    public func record(_ type: String, _ id: RecordID) throws -> Attributes? {
        try store.record(type, id)
    }

    /// The id a record has now: the permanent one as soon as it is known.
    public func currentID(_ type: String, _ id: RecordID) throws -> RecordID {
        try store.resolve(id, type: try store.index(of: type))
    }

    /// Runs one SQL statement with bound values, and returns its rows.
    public func rows(_ sql: String, _ arguments: [Value] = []) throws -> [Attributes] {
        try store.rows(sql, arguments)
    }
}

@available(*, unavailable)
extension ReadContext: Sendable {}

extension LocalStore {
    /// Runs `body` in one read transaction, so that all it reads is of one moment.
    public func reading<Result>(_ body: () throws -> Result) throws -> Result {
        try connection.run("BEGIN")
        defer { connection.rollback() }
        return try body()
    }
}
