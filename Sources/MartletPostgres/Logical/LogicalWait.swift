import PostgresKit

/// Waits until everything that other programs have committed by now has been read from the
/// write-ahead log.
///
/// It uses a separate connection, because its message must be written to disk before the reader can
/// see it, while the caller's transaction is open.
final class LogicalWait {
    private let address: PostgresAddress
    private var connection: PostgresConnection?

    init(_ address: PostgresAddress) {
        self.address = address
    }

    func close() {
        connection?.close()
        connection = nil
    }

    /// Makes PostgreSQL write everything that was committed until now to disk.
    /// - Returns: A position in the write-ahead log after all of it.
    func flushedPosition() throws(PostgresError) -> UInt64 {
        let open: PostgresConnection
        if let connection {
            open = connection
        } else {
            open = try connect()
            connection = open
        }
        // The commit of this message writes out everything committed before it, and the message
        // signals the reader.
        let text = try open.query(
            "SELECT pg_catalog.pg_logical_emit_message(true, 'martlet.wait', '')::text"
        ).text(0, 0)
        guard let position = PostgresConnection.position(text) else {
            throw PostgresError(.other, "“\(text)” is no position in the write-ahead log")
        }
        return position
    }

    /// Waits until the reader has read everything committed until now.
    /// - Parameter rounds: The number of checks, about a millisecond apart.
    /// - Returns: Whether everything has been read.
    func wait(rounds: Int = 500) throws(PostgresError) -> Bool {
        if let connection, !connection.isUsable() { close() }
        do throws(PostgresError) {
            let lsn = PostgresConnection.lsn(try flushedPosition())
            guard let connection else { return false }
            let look = [
                PostgresStatement("SELECT pg_catalog.pg_sleep(0.001)"),
                PostgresStatement(
                    """
                    SELECT coalesce(position >= $1::text::pg_lsn, false), position IS NULL \
                    FROM _martlet.capture
                    """, [.text(lsn)]),
            ]
            for _ in 0..<rounds {
                // Each statement is a separate transaction, which sees later commits.
                let rows = try connection.pipeline(look.map { [$0] })[1][0].get()
                // Without a row, the data set has triggers again.
                guard rows.count > 0 else { return true }
                if try rows.boolean(0, 0) { return true }
                // The tables must be compared first, which may take long.
                if try rows.boolean(0, 1) { return false }
            }
            return false
        } catch {
            close()
            throw error
        }
    }

    private func connect() throws(PostgresError) -> PostgresConnection {
        let connection = try PostgresConnection(
            address, PostgresOptions(connecting: .seconds(5), name: "martlet wait"))
        try connection.execute("SET synchronous_commit = local")
        return connection
    }
}
