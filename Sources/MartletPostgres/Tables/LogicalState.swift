package import PostgresKit

/// How Martlet learns what other programs write to the tables.
package enum ExternalCapture: String, Hashable, Sendable, CaseIterable {
    /// Triggers note it in the writer's transaction.
    case triggers
    /// It is read from the write-ahead log (logical decoding).
    case logical
}

/// What `_martlet.capture` says: that other programs' writes are read from the write-ahead log, from
/// where, and how far that has come.
package struct LogicalState: Hashable, Sendable {
    package let slot: String
    package let publication: String
    /// Every transaction that ended before it is in `_martlet.foreign_changes` or in the log; nil
    /// while the tables have to be compared with the log.
    package let position: UInt64?
    /// Every transaction with a smaller number has been read, or wrote nothing; 0 if the numbers are not
    /// those of the log, because the database is a copy.
    package let horizon: UInt64
    /// External transactions read so far.
    package let entered: Int64

    /// nil where triggers are used.
    package static func read(
        _ connection: PostgresConnection
    ) throws(PostgresError) -> LogicalState? {
        let known = try connection.query(
            "SELECT pg_catalog.to_regclass('_martlet.capture') IS NOT NULL")
        guard try known.boolean(0, 0) else { return nil }
        let rows = try connection.query(
            """
            SELECT slot, publication, position::text, horizon, entered FROM _martlet.capture
            """)
        guard rows.count == 1 else { return nil }
        return LogicalState(
            slot: try rows.text(0, 0), publication: try rows.text(0, 1),
            position: rows.isNull(0, 2)
                ? nil : PostgresConnection.position(try rows.text(0, 2)),
            horizon: UInt64(bitPattern: try rows.integer(0, 3)),
            entered: try rows.integer(0, 4))
    }

    /// The name of a data set's slot and publication: no other data set of the cluster has it.
    static func name(_ dataSet: PostgresDataSet) -> String {
        let words = dataSet.name.lowercased().map { character in
            character.isASCII && (character.isLetter || character.isNumber) ? character : "_"
        }
        return "martlet_\(String(words).prefix(32))_\(dataSet.identity.prefix(12))"
    }

    /// Whether a row's version, by its `xmin`, is of a transaction that has been read. Such numbers
    /// go round; what is frozen is older than all.
    static func isRead(_ version: Int64, horizon: UInt64) -> Bool {
        // Until a copy of a database is compared, such numbers say nothing in it.
        guard horizon > 0 else { return false }
        let version = UInt32(truncatingIfNeeded: version)
        return version < 3
            || Int32(bitPattern: version &- UInt32(truncatingIfNeeded: horizon)) < 0
    }

    /// SQL for what a transaction says that Martlet itself made: its rows are no external write.
    static let ownMark = "pg_catalog.pg_logical_emit_message(true, 'martlet', '')"
}
