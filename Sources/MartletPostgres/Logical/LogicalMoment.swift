import PostgresKit

/// Finds out if a transaction sees external writes that have not been read from the write-ahead log
/// yet.
final class LogicalMoment {
    private let wait: LogicalWait
    private let other: PostgresConnection

    /// Connects; nil if triggers note all writes.
    init?(_ connection: PostgresConnection) throws(PostgresError) {
        guard try LogicalState.read(connection) != nil else { return nil }
        wait = LogicalWait(connection.address)
        other = try PostgresConnection(
            connection.address, PostgresOptions(readOnly: true, name: "martlet wait"))
    }

    func close() {
        wait.close()
        other.close()
    }

    /// Returns whether the transaction sees such writes.
    /// - Parameter connection: A connection with a transaction that sees one moment.
    /// - Throws: `PostgresError` of kind `busy` if no process reads the slot.
    func hasUnread(_ connection: PostgresConnection) throws(PostgresError) -> Bool {
        let seen = try LogicalState.read(connection)?.entered
        try awaitAll()
        // Everything committed before that moment has been read now. The count shows if any of it
        // was new.
        return try LogicalState.read(other)?.entered != seen
    }

    /// Waits until everything that is committed now has been read.
    /// - Throws: `PostgresError` of kind `busy` if no process reads the slot.
    func awaitAll() throws(PostgresError) {
        guard try wait.wait(rounds: 5_000) else {
            throw PostgresError(
                .busy,
                """
                no server reads the replication slot, or the commit of another program waits for a \
                standby: start a server, and look at pg_stat_replication
                """)
        }
    }
}
