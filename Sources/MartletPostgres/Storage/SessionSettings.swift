import MartletModel
import MartletServerCore
import PostgresKit

/// The settings of the database's session that Martlet's statements and the user's triggers depend
/// on, with their required values.
///
/// A trigger that runs SET changes them for all sets of the transaction. SET without LOCAL changes
/// them for all later work on the connection. A rollback undoes both, also a rollback to a
/// savepoint.
struct SessionSettings {
    /// The settings that a set must not change. With another value, texts or lists are read and
    /// written wrongly, triggers do not fire, rows are hidden, or nothing can be written. The effect of
    /// the rest of a set is then unknown.
    private static let vital = [
        "client_encoding", "array_nulls", "session_replication_role", "transaction_read_only",
        "row_security",
    ]
    /// The settings that are restored after a set. A change of `session_authorization` also changes
    /// `role`, so it is first.
    private static let others = [
        "session_authorization", "role", "search_path", "DateStyle", "IntervalStyle", "TimeZone",
        "extra_float_digits", "bytea_output", "standard_conforming_strings",
        "default_transaction_isolation", "default_transaction_read_only", "synchronous_commit",
        "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
        "plan_cache_mode", "enable_seqscan", "jit",
    ]
    private static let names = vital + others
    private static let list =
        "ARRAY[\(names.map { "pg_catalog.current_setting('\($0)')" }.joined(separator: ", "))]"

    /// The statement that returns the present settings, and whether the rows that a set changes are
    /// noted.
    static let reading = PostgresStatement(
        "SELECT \(list), pg_catalog.current_setting('martlet.applying', true) <> 'on'")

    private let values: [String]
    /// Whether Martlet's triggers note the rows.
    let isNoting: Bool

    /// Reads the settings from an answer.
    /// - Parameter rows: The answer to `reading`.
    /// - Throws: `PostgresError` if the answer cannot be read.
    init(_ rows: PostgresRows) throws(PostgresError) {
        guard case .array(let array) = try rows.value(0, 0) else {
            throw PostgresError(.other, "the settings of the session cannot be read")
        }
        values = array.elements.map { $0.text ?? "" }
        isNoting = try rows.boolean(0, 1)
    }

    subscript(_ name: String) -> String? {
        Self.names.firstIndex(of: name).map { values[$0] }
    }

    /// A statement that fails if a setting has changed.
    var check: PostgresStatement {
        PostgresStatement(
            "SELECT 1 / (\(Self.list) = $1::text[])::integer", [PendingWrites.texts(values)])
    }

    /// Returns the name of the first vital setting that has another value; nil if there is none.
    func broken(by left: SessionSettings) -> String? {
        Self.vital.indices.first { values[$0] != left.values[$0] }.map { Self.names[$0] }
    }

    /// Returns a statement that restores changed settings; nil if nothing has changed.
    func restoring(_ left: SessionSettings) -> PostgresStatement? {
        let changed = values.indices.filter { values[$0] != left.values[$0] }
        guard !changed.isEmpty else { return nil }
        let calls = changed.indices.map { index in
            "pg_catalog.set_config('\(Self.names[changed[index]])', $\(index + 1)::text, false)"
        }
        return PostgresStatement(
            "SELECT \(calls.joined(separator: ", "))", changed.map { .text(values[$0]) })
    }
}

extension DataSetSession {
    /// Checks if a set's triggers changed a vital setting.
    /// - Parameters:
    ///   - left: The settings between the set's statements.
    ///   - captures: Whether the rows that the set changes must be noted.
    /// - Throws: `SetFailure` that puts the set off.
    func checkVital(_ left: [SessionSettings], captures: Bool) throws(SetFailure) {
        var name = settings.flatMap { left.lazy.compactMap($0.broken).first }
        if captures, left.contains(where: { !$0.isNoting }) { name = "martlet.applying" }
        guard let name else { return }
        let words = "a trigger leaves the session's setting “\(name)” changed"
        if trouble == nil { trouble = PostgresError(.other, words) }
        throw .refused(
            Refusal(
                .busy, "the database cannot carry out the change now: \(words)",
                retryAfter: Self.repairSeconds))
    }

    /// Restores the other settings that a set's triggers changed.
    func putBack(_ left: SessionSettings) throws(SetFailure) {
        guard let statement = settings?.restoring(left) else { return }
        _ = try SetFailure.of { () throws(PostgresError) in try run([statement]) }
    }

    /// Notes that the database ended the connection while it carried out sets. One of their
    /// triggers may be the cause.
    /// - Returns: Whether to restart the batch on a new connection. Nothing has been committed.
    func hasEnded(with error: PostgresError) -> Bool {
        guard error.endsConnection, error.sqlState != nil, error.kind != .unknownOutcome,
            !underway.isEmpty
        else { return false }
        slow.noteEnd(of: underway)
        underway = []
        return true
    }

    /// Notes an error outside all sets, after some had been carried out. One of them may be the
    /// cause, because it left a constraint or a trigger to the commit, or changed the session.
    /// - Returns: Whether to restart the batch, once. Each set is then carried out alone, and
    ///   leaves nothing to the commit.
    func takesCare(after error: PostgresError) -> Bool {
        guard openSavepoints, !isCareful, !error.endsConnection, !connection.isLost,
            error.sqlState != TableNames.state
        else { return false }
        isCareful = true
        isOutdated = true
        return true
    }
}
