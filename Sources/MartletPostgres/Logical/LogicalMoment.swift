import PostgresKit

/// Whether a transaction sees what other programs committed and nobody has read from the write-ahead
/// log yet.
final class LogicalMoment {
    private let wait: LogicalWait
    private let other: PostgresConnection

    /// nil where triggers note everything.
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

    /// - Parameter connection: In a transaction of one moment.
    /// - Throws: `PostgresError` of kind `busy` where nobody reads.
    func hasUnread(_ connection: PostgresConnection) throws(PostgresError) -> Bool {
        let seen = try LogicalState.read(connection)?.entered
        try awaitAll()
        // Whatever was committed before that moment has been read now: was anything of it new?
        return try LogicalState.read(other)?.entered != seen
    }

    /// Waits until what is committed now has been read.
    /// - Throws: `PostgresError` of kind `busy` where nobody reads.
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
