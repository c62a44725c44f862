public import MartletModel
internal import SQLiteKit

/// A view of the data at one moment. Valid inside the closure it was given to.
public class ReadContext {
    package let session: Session
    /// Where what is read is noted, for an observation; nil otherwise.
    let recorder: RegionRecorder?
    private var isOver = false

    package init(session: Session, recorder: RegionRecorder? = nil) {
        self.session = session
        self.recorder = recorder
    }

    /// Ends the context: whoever kept it gets an error from now on.
    package func end() { isOver = true }

    /// - Throws: `StoreError` `.misuse` once the closure has ended.
    func checkValid() throws {
        guard !isOver else {
            throw StoreError(
                .misuse,
                "The context was used outside the closure it was given to. Take values out of the"
                    + " closure, not the context.")
        }
    }

    /// - Throws: `StoreError` `.misuse` for a statement that has no place in the context.
    func check(_ access: TableAccess) throws {
        guard access.isReading, access.temporaries.isEmpty else {
            throw StoreError(.misuse, "A statement that writes was given to read; use write.")
        }
        try Self.refuseTransactions(access)
        try Self.refuseSettings(access, isWriting: false)
    }

    /// The transaction is the closure's; one ended by hand would let half of its work stay.
    static func refuseTransactions(_ access: TableAccess) throws {
        guard !access.controlsTransaction else {
            throw StoreError(
                .misuse,
                "BEGIN, COMMIT, ROLLBACK and SAVEPOINT have no place in a closure: it is one"
                    + " transaction. Throw to take all of it back, or use savepoint { }.")
        }
    }

    /// Later calls use the connection after the closure. Therefore PRAGMAs that set something for
    /// the connection are refused when they are compiled.
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

    /// The synchronised types; none in a database that is not kept in step.
    package var schema: Schema { session.store?.schema ?? Schema(types: []) }

    /// A record's attributes; nil where there is none. A temporary id finds the record for ever.
    public func record(_ type: String, _ id: RecordID) throws -> Attributes? {
        try checkValid()
        let store = try synchronised()
        if recorder != nil {
            let current = try store.resolve(id, type: try store.index(of: type))
            try note(
                SQLValue(current), session.tableStatements(type, declaration: nil))
        }
        return try store.record(type, id)
    }

    /// The id a record has now: the permanent one as soon as it is known.
    public func currentID(_ type: String, _ id: RecordID) throws -> RecordID {
        try checkValid()
        let store = try synchronised()
        return try store.resolve(id, type: try store.index(of: type))
    }

    /// Runs one SQL statement with bound values, and returns its rows.
    /// - Parameters:
    ///   - sql: The statement, with `?` in place of each value.
    ///   - arguments: One value for each `?` of the statement.
    /// - Throws: `StoreError`.
    @discardableResult
    public func rows(_ sql: String, _ arguments: [SQLValue] = []) throws -> [RecordValues] {
        var rows: [RecordValues] = []
        try forEachRow(sql, arguments) { rows.append(try $0.values) }
        return rows
    }

    /// Runs one SQL statement with bound values, and hands over one row after the other, so that
    /// any number of rows takes the memory of one.
    /// - Throws: `StoreError`, and what `body` throws, which ends the query.
    public func forEachRow(
        _ sql: String, _ arguments: [SQLValue] = [], _ body: (borrowing Row) throws -> Void
    ) throws {
        try checkValid()
        try session.forEachRow(sql, arguments, recorder: recorder, check: check, body)
    }

    /// What SQLite says about how it would run a statement, a line for each step
    /// (https://sqlite.org/eqp.html).
    public func queryPlan(_ sql: String, _ arguments: [SQLValue] = []) throws -> [String] {
        try checkValid()
        var lines: [String] = []
        try session.forEachRow("EXPLAIN QUERY PLAN " + sql, arguments) { row in
            lines.append(try row.get("detail", as: String.self))
        }
        return lines
    }

    /// A table's columns, key and indexes as they are in the database.
    /// - Throws: `StoreError` `.unknown` where there is no such table.
    public func description(of table: String) throws -> TableDescription {
        try checkValid()
        return try session.description(of: table)
    }

    /// The synchronised tables.
    func synchronised() throws -> any SyncedTables {
        guard let store = session.store else {
            throw StoreError(.misuse, "This database is not kept in step; use its tables.")
        }
        return store
    }
}

@available(*, unavailable)
extension ReadContext: Sendable {}
