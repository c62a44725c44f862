package import PostgresKit

/// The way in which Martlet learns of external writes to the tables.
package enum ExternalCapture: String, Hashable, Sendable, CaseIterable {
    /// Triggers note the writes in the writer's transaction.
    case triggers
    /// Martlet reads the writes from the write-ahead log (logical decoding).
    case logical
}

/// The content of `_martlet.capture`. A row there says that external writes are read from the
/// write-ahead log, from which slot, and how far reading has come.
package struct LogicalState: Hashable, Sendable {
    package let slot: String
    package let publication: String
    /// The position before which every transaction that ended is in `_martlet.foreign_changes` or
    /// in the log; nil while the tables must be compared with the log.
    package let position: UInt64?
    /// The number below which every transaction has been read or wrote nothing; 0 if the numbers
    /// are not those of the log, because the database is a copy.
    package let horizon: UInt64
    /// The number of external transactions read so far.
    package let entered: Int64

    /// Reads the state; nil if triggers are used.
    /// - Throws: `PostgresError` if it cannot be read.
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

    /// Returns the name of a data set's slot and publication. No other data set of the cluster has
    /// it.
    static func name(_ dataSet: PostgresDataSet) -> String {
        let words = dataSet.name.lowercased().map { character in
            character.isASCII && (character.isLetter || character.isNumber) ? character : "_"
        }
        return "martlet_\(String(words).prefix(32))_\(dataSet.identity.prefix(12))"
    }

    /// Returns whether a row's version, by its `xmin`, is from a transaction that has been read.
    /// Such numbers wrap around; a frozen version is older than all.
    static func isRead(_ version: Int64, horizon: UInt64) -> Bool {
        // Until a copy of a database is compared, such numbers mean nothing in it.
        guard horizon > 0 else { return false }
        let version = UInt32(truncatingIfNeeded: version)
        return version < 3
            || Int32(bitPattern: version &- UInt32(truncatingIfNeeded: horizon)) < 0
    }

    /// The SQL that marks a transaction as Martlet's own: its rows are no external write.
    static let ownMark = "pg_catalog.pg_logical_emit_message(true, 'martlet', '')"
}
