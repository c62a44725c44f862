internal import Foundation
internal import SQLiteKit

/// The tokens of one data set, beside a backup of it: a file of the same form as `tokens.sqlite`.
extension TokenStore {
    /// Copies a folder's tokens for a data set, while a server may go on.
    /// - Parameter path: The file to write; nothing is there yet.
    /// - Returns: Whether there was something to copy.
    static func copy(of dataSet: String, in directory: String, to path: String) throws -> Bool {
        let source = Self.path(in: directory)
        guard FileManager.default.fileExists(atPath: source) else { return false }
        let copy = try Connection(path: path)
        try copy.copy(from: try Connection(path: source, mode: .readWrite))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        // The hashes of others' tokens are none of this backup's business, nor their remains.
        try copy.execute("PRAGMA journal_mode = DELETE")
        let others = try copy.statement("DELETE FROM martlet_tokens WHERE dataset <> ?")
        others.bind(1, text: dataSet)
        try others.run()
        try copy.execute("VACUUM")
        return true
    }

    /// Takes over the tokens of a data set that a backup brings, beside those that are here. What
    /// was revoked, there or here, stays so.
    /// - Parameters:
    ///   - path: A file that `copy` has written.
    ///   - takesSalt: Whether fixed tokens are to be called as they were where the backup was made:
    ///     devices are bound to those names.
    /// - Returns: How many good tokens the data set has now.
    func takeOver(_ dataSet: String, from path: String, takesSalt: Bool) throws -> Int {
        let backup = try Connection(path: path, mode: .readOnly)
        let read = try backup.prepare(
            """
            SELECT hash, identifier, user, roles, device, created, revoked FROM martlet_tokens
            WHERE dataset = ?
            """)
        read.bind(1, text: dataSet)
        let salt = try backup.prepare("SELECT salt FROM martlet_salt")
        let saltBytes = try salt.step() ? salt.blob(0) : []
        return try connection.transaction {
            while try read.step() { try takeOver(read, dataSet) }
            if takesSalt, !saltBytes.isEmpty {
                let update = try connection.statement("UPDATE martlet_salt SET salt = ?")
                update.bind(1, blob: saltBytes)
                try update.run()
            }
            let count = try connection.statement(
                "SELECT count(*) FROM martlet_tokens WHERE dataset = ? AND revoked IS NULL")
            defer { count.reset() }
            count.bind(1, text: dataSet)
            return try count.step() ? Int(count.integer(0)) : 0
        }
    }

    private func takeOver(_ row: Statement, _ dataSet: String) throws {
        let insert = try connection.statement(
            """
            INSERT INTO martlet_tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (hash) DO UPDATE SET revoked = coalesce(revoked, excluded.revoked)
            """)
        insert.bind(1, blob: row.blob(0))
        insert.bind(2, text: row.text(1))
        insert.bind(3, text: dataSet)
        bind(insert, 4, row.isNull(2) ? nil : row.text(2))
        insert.bind(5, text: row.text(3))
        bind(insert, 6, row.isNull(4) ? nil : row.text(4))
        insert.bind(7, integer: row.integer(5))
        if row.isNull(6) { insert.bindNull(8) } else { insert.bind(8, integer: row.integer(6)) }
        try insert.run()
    }
}
