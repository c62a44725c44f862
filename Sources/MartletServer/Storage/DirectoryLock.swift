internal import SQLiteKit

/// Holds a data directory for one server process.
///
/// The lock is SQLite's lock on an empty database. The operating system releases it however the
/// process ends, and a second server in the same process is refused as well.
final class DirectoryLock {
    private let connection: Connection

    /// Takes the lock.
    ///
    /// - Throws: `ServerFailure` if another server has the directory; `SQLiteError`.
    init(directory: String) throws {
        let path = directory + "/martlet.lock"
        // Two servers that start at once can each have a part of the lock, and each is refused for the
        // other's. Both give their parts back and try again.
        connection = try Connection(
            path: path, busyTimeoutMilliseconds: 1_000)
        do {
            try connection.execute("BEGIN EXCLUSIVE")
            FileOwner.assign(path, in: directory)
        } catch  where error.isBusy {
            throw ServerFailure(
                """
                Another martlet server is running on this data directory; stop it first, or give \
                this one a directory of its own with --data.
                """)
        }
    }
}
