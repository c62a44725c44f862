public import MartletModel
internal import SQLiteKit

/// A view of the data at one moment. It is valid only inside the closure that receives it.
///
/// ```swift
/// let names = try await pool.read { context in
///     try context.rows("SELECT name FROM players WHERE team = ?", [7])
///         .map { try $0.value("name", as: String.self) }
/// }
/// ```
public class ReadContext {
    package let session: Session
    /// The recorder of the tables and rows that an observation reads; nil if the read is not
    /// observed.
    let recorder: RegionRecorder?
    private var isOver = false

    package init(session: Session, recorder: RegionRecorder? = nil) {
        self.session = session
        self.recorder = recorder
    }

    /// Ends the context. From now on it throws an error to any code that kept it.
    package func end() { isOver = true }

    /// Checks that the context is still valid.
    /// - Throws: `StoreError` `.misuse` after the closure has ended.
    func checkValid() throws {
        guard !isOver else {
            throw StoreError(
                .misuse,
                "The context was used outside the closure it was given to. Take values out of the"
                    + " closure, not the context.")
        }
    }

    /// Checks that the context allows a statement.
    /// - Throws: `StoreError` `.misuse` if it does not.
    func check(_ access: TableAccess) throws {
        guard access.isReading, access.temporaries.isEmpty else {
            throw StoreError(.misuse, "A statement that writes was given to read; use write.")
        }
        try Self.refuseTransactions(access)
        try Self.refuseSettings(access, isWriting: false)
    }

    /// Refuses statements that control the transaction. The whole closure is one transaction. If
    /// the closure ended it, half of its work could stay.
    /// - Throws: `StoreError` `.misuse`.
    static func refuseTransactions(_ access: TableAccess) throws {
        guard !access.controlsTransaction else {
            throw StoreError(
                .misuse,
                "BEGIN, COMMIT, ROLLBACK and SAVEPOINT have no place in a closure: it is one"
                    + " transaction. Throw to take all of it back, or use savepoint { }.")
        }
    }

    /// Refuses ATTACH, DETACH and PRAGMAs that change the connection's settings, because later
    /// calls use the same connection. The check takes place when the statement is compiled.
    /// - Throws: `StoreError` `.misuse`.
    static func refuseSettings(_ access: TableAccess, isWriting: Bool) throws {
        guard !access.attaches else {
            throw StoreError(
                .misuse,
                "ATTACH and DETACH have no place in a closure, because later calls use its connection."
                    + " Open the other database on its own.")
        }
        switch access.pragma {
        case .asks, nil: return
        case .isTransactional where isWriting: return
        default:
            throw StoreError(
                .misuse,
                "A closure may ask with a PRAGMA, and one that writes may set defer_foreign_keys,"
                    + " user_version and application_id. Leave this one out.")
        }
    }

    /// The synchronised types; none if the database is not synchronised.
    package var schema: Schema { session.store?.schema ?? Schema(types: []) }

    /// Returns the id that a record has now: the permanent one as soon as the device knows it.
    /// - Throws: `StoreError` `.unknown` if there is no such type; `.misuse` if the database is not
    ///   synchronised.
    public func currentID(_ type: String, _ id: RecordID) throws -> RecordID {
        try checkValid()
        let store = try synchronised()
        return try store.resolve(id, type: try store.index(of: type))
    }

    /// Runs one SQL statement with bound values, and returns all its rows.
    /// - Parameters:
    ///   - sql: The statement, with `?` in place of each value.
    ///   - arguments: One value for each `?` of the statement.
    /// - Throws: `StoreError` for a statement that is invalid or not allowed here, the wrong number
    ///   of values, or any other error of SQLite.
    @discardableResult
    public func rows(_ sql: String, _ arguments: [SQLValue] = []) throws -> [RecordValues] {
        var rows: [RecordValues] = []
        try forEachRow(sql, arguments) { rows.append(try $0.values) }
        return rows
    }

    /// Runs one SQL statement with bound values, and calls `body` with each row. It holds one row
    /// in memory at a time.
    /// - Throws: `StoreError` as `rows` does, and any error of `body`, which ends the query.
    public func forEachRow(
        _ sql: String, _ arguments: [SQLValue] = [], _ body: (borrowing Row) throws -> Void
    ) throws {
        try checkValid()
        try session.forEachRow(sql, arguments, recorder: recorder, check: check, body)
    }

    /// Returns SQLite's plan for a statement, with one line for each step
    /// (https://sqlite.org/eqp.html).
    /// - Throws: `StoreError` if the statement is invalid.
    public func queryPlan(_ sql: String, _ arguments: [SQLValue] = []) throws -> [String] {
        try checkValid()
        var lines: [String] = []
        try session.forEachRow("EXPLAIN QUERY PLAN " + sql, arguments) { row in
            lines.append(try row.get("detail", as: String.self))
        }
        return lines
    }

    /// Returns a table's columns, key and indexes as they are in the database.
    /// - Throws: `StoreError` `.unknown` if there is no such table.
    public func description(of table: String) throws -> TableDescription {
        try checkValid()
        return try session.description(of: table)
    }

    /// Notes that an observed read depends on all of some tables.
    package func noteReading(of tables: [String]) {
        if let recorder { session.note(Set(tables), recorder) }
    }

    /// Returns the synchronised tables.
    /// - Throws: `StoreError` `.misuse` if the database is not synchronised.
    func synchronised() throws -> any SyncedTables {
        guard let store = session.store else {
            throw StoreError(.misuse, "This database is not kept in step; use its tables.")
        }
        return store
    }
}

@available(*, unavailable)
extension ReadContext: Sendable {}
