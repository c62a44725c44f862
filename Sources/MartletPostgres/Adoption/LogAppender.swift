import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// Adds the server's own entries to the end of the log, within a transaction that holds the data
/// set's row.
final class LogAppender {
    let connection: PostgresConnection
    private let now: Int64
    private(set) var head: LogHead

    /// Locks the data set's row, so no other transaction writes to the log until this one ends.
    /// - Parameter now: Milliseconds since 1970.
    init(on connection: PostgresConnection, now: Int64) throws(PostgresError) {
        self.connection = connection
        self.now = now
        let rows = try connection.query("SELECT revision, hash FROM _martlet.dataset FOR UPDATE")
        head = LogHead(
            revision: try rows.integer(0, 0),
            hash: LineageHash(stored: try rows.binary(0, 1)))
    }

    /// Appends one entry.
    func enter(_ types: [TypeChanges]) throws {
        var set = ChangeSet(types: types)
        let revision = head.revision + 1
        set.revision = revision
        let body = try SyncCoder.encode(set)
        head = LogHead(revision: revision, hash: head.hash.appending(body, identifier: nil))
        _ = try connection.query(
            """
            INSERT INTO _martlet.log (revision, device, hash, time, body) VALUES ($1, 0, $2, $3, $4)
            """,
            [
                .integer(revision), .binary(head.hash.bytes), .integer(now), .binary(body),
            ])
    }

    /// Stores the end of the log in the data set's row.
    func finish() throws(PostgresError) {
        _ = try connection.query(
            "UPDATE _martlet.dataset SET revision = $1, hash = $2",
            [.integer(head.revision), .binary(head.hash.bytes)])
    }
}
