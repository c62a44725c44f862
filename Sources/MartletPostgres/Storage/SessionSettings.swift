import MartletModel
import MartletServerCore
import PostgresKit

/// Settings of the database's session on which Martlet's statements and the user's triggers depend, with
/// the values that they have to have.
///
/// A trigger that runs SET changes them for all sets of the transaction, and SET without LOCAL for
/// everything that is ever done on the connection. A rollback undoes both, also one to a savepoint.
struct SessionSettings {
    /// Under another value texts or lists are read and written wrongly, triggers do not fire, or nothing
    /// can be written: it cannot be told what the rest of a set then did.
    private static let vital = [
        "client_encoding", "array_nulls", "session_replication_role", "transaction_read_only",
    ]
    /// A set may have changed these; they are put back. A change of `session_authorization` changes `role`,
    /// too, so it comes first.
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

    /// Returns the settings as they are now, and whether rows are noted that a set changes.
    static let reading = PostgresStatement(
        "SELECT \(list), pg_catalog.current_setting('martlet.applying', true) <> 'on'")

    private let values: [String]
    /// Whether the triggers of Martlet's note the rows.
    let isNoting: Bool

    /// - Parameter rows: The answer to `reading`.
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

    /// Fails if a setting has changed.
    var check: PostgresStatement {
        PostgresStatement(
            "SELECT 1 / (\(Self.list) = $1::text[])::integer", [PendingWrites.texts(values)])
    }

    /// Returns the first of the settings without which a set is worth nothing that has another value.
    func broken(by left: SessionSettings) -> String? {
        Self.vital.indices.first { values[$0] != left.values[$0] }.map { Self.names[$0] }
    }

    /// Puts back what another program left; nil if nothing has changed.
    func restoring(_ left: SessionSettings) -> PostgresStatement? {
        let changed = values.indices.filter { values[$0] != left.values[$0] }
        guard !changed.isEmpty else { return nil }
        let calls = changed.indices.map { place in
            "pg_catalog.set_config('\(Self.names[changed[place]])', $\(place + 1)::text, false)"
        }
        return PostgresStatement(
            "SELECT \(calls.joined(separator: ", "))", changed.map { .text(values[$0]) })
    }
}

extension StoreSession {
    /// Finds out whether a set's triggers left a vital setting changed.
    /// - Parameters:
    ///   - left: The settings as they were between the set's statements.
    ///   - captures: Whether the rows that the set changes are to be noted.
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

    /// Puts back the other settings that a set's triggers left changed.
    func putBack(_ left: SessionSettings) throws(SetFailure) {
        guard let statement = settings?.restoring(left) else { return }
        _ = try SetFailure.of { () throws(PostgresError) in try run([statement]) }
    }

    /// Notes that the database ended the connection while sets were being carried out. One of their triggers
    /// may have done it.
    /// - Returns: Whether to begin the batch again on a new connection. Nothing has been committed.
    func hasEnded(with error: PostgresError) -> Bool {
        guard error.endsConnection, error.sqlState != nil, error.kind != .unknownOutcome,
            !underway.isEmpty
        else { return false }
        slow.noteEnd(of: underway)
        underway = []
        return true
    }

    /// Notes that something failed outside all sets, after some had been carried out. One of them may be at
    /// fault: it left a constraint or a trigger to the commit, or changed the session.
    /// - Returns: Whether to begin the batch again, once: each set then goes alone, and nothing of it is left
    ///   to the commit.
    func takesCare(after error: PostgresError) -> Bool {
        guard openSavepoints, !isCareful, !error.endsConnection, !connection.isLost else {
            return false
        }
        isCareful = true
        isOutdated = true
        return true
    }
}
