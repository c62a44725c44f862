internal import Foundation
internal import SQLiteKit

/// The tokens of one data set, next to its backup, in a file of the same format as `tokens.sqlite`.
extension TokenStore {
    /// Copies a folder's tokens for a data set. A server may run meanwhile.
    ///
    /// - Parameter path: The path of the file to write. There must be no file yet.
    /// - Returns: False if the folder has no file of tokens.
    static func copy(of dataSet: String, in directory: String, to path: String) throws -> Bool {
        let source = Self.path(in: directory)
        guard FileManager.default.fileExists(atPath: source) else { return false }
        let copy = try Connection(path: path)
        try copy.copy(from: try Connection(path: source, mode: .readWrite))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        // The backup must not have the hashes of other data sets' tokens, nor remains of them.
        try copy.execute("PRAGMA journal_mode = DELETE")
        let others = try copy.statement("DELETE FROM martlet_tokens WHERE dataset <> ?")
        others.bind(1, text: dataSet)
        try others.run()
        try copy.execute("VACUUM")
        return true
    }

    /// Adds the tokens of a data set from a backup. A token that is revoked in either place stays
    /// revoked.
    ///
    /// - Parameters:
    ///   - path: A file that `copy` has written.
    ///   - takesSalt: True if fixed tokens get the names that they had where the backup was made.
    ///     Devices are bound to those names.
    /// - Returns: The number of good tokens that the data set now has.
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
