internal import MartletModel
internal import MartletProtocol
internal import MartletStore
package import SQLiteKit
internal import SQLiteRecords

/// Fetches everything once more, under the changes that the device still has to send.
///
/// This is the fallback if a device's tables cannot be brought to a new schema. The file keeps its
/// identity, its queue, its refused sets, its id map and its receipts. The app's tables are
/// recreated, empty, and ordinary exchanges fetch the change log from the beginning. Until the
/// device has reached its former revision, it sends nothing, and a queued set that cannot be
/// applied yet waits for the rest.
extension DeviceStore {
    /// Empties a device's file of everything that the server can send again, and recreates its
    /// tables.
    ///
    /// This is one transaction: afterwards the file is either unchanged or emptied. Nothing else
    /// may have the file open. Open it afterwards as usual; the exchanges that follow fetch what is
    /// missing.
    /// - Parameters:
    ///   - now: Milliseconds since 1970, for external writes that are not queued yet.
    ///   - randomBits: The source of identities.
    ///   - make: Makes the app's tables, empty, on the connection it gets, in that transaction.
    /// - Throws: Errors of `make`; `StoreError` `.file` if there is no device's file, `.schema` for
    ///   tables that cannot be synchronised; `SQLiteError` if the file itself fails.
    package static func beginRefetching(
        path: String, vfs: String? = nil, now: Int64, randomBits: @escaping () -> UInt64,
        making make: (Connection) throws -> Void
    ) throws {
        try checkFile(path: path, vfs: vfs)
        let old = try DeviceStore(path: path, script: nil, vfs: vfs, randomBits: randomBits)
        let store = old.applying
        try store.connection.transaction {
            try old.closeExternalCapture(store, now: now)
            let before = try old.standing
            var after = before
            try after.empty(mark: old.newestMark())
            try old.clearStaged(&after)
            try after.write(to: store, over: before)
            try store.connection.execute(
                """
                DELETE FROM martlet_records; DELETE FROM martlet_base; DELETE FROM martlet_lease;
                DELETE FROM martlet_quarantine;
                UPDATE martlet_outbox SET applied = 0, settling = 0;
                UPDATE martlet_withheld SET shows = 0;
                """)
            try store.replaceTables(make)
        }
    }

    /// Empties the file as above, makes the tables of a script, and opens the file.
    /// - Parameter script: The app's DDL.
    /// - Throws: `StoreError`, or `SQLiteError` if the file itself fails.
    package static func beginRefetching(
        path: String, script: String, vfs: String? = nil, now: Int64,
        randomBits: @escaping () -> UInt64
    ) throws -> DeviceStore {
        try beginRefetching(path: path, vfs: vfs, now: now, randomBits: randomBits) { connection in
            do {
                _ = try SchemaMigration.apply(script: script, to: connection)
            } catch let error as SchemaError {
                throw StoreError(.schema, error.message)
            }
        }
        return try DeviceStore(path: path, script: script, vfs: vfs, randomBits: randomBits)
    }

    private static func checkFile(path: String, vfs: String?) throws {
        let connection = try Connection(path: path, mode: .readWrite, vfs: vfs)
        guard
            try connection.integer(
                "SELECT 1 FROM sqlite_schema WHERE name = 'martlet_control'") != nil
        else {
            throw StoreError(
                .file,
                "Only a device's file can refetch its data; this one was never set up as one.")
        }
    }
}

// MARK: - On the way back

extension DeviceStore {
    /// Returns the newest revision whose hash is remembered; nil if there is none.
    private func newestMark() throws -> HistoryMark? {
        let find = try applying.connection.statement(
            "SELECT revision, lineage FROM martlet_lineages ORDER BY revision DESC LIMIT 1")
        defer { find.reset() }
        guard try find.step() else { return nil }
        return HistoryMark(revision: find.integer(0), lineage: find.text(1))
    }

    /// Notes that the server's history is the device's former one. The entries of that answer are
    /// newer than those that the device needs next.
    /// - Returns: Whether this was still unknown.
    func confirmHistory(owner: String, now: Int64) throws -> Bool {
        try changeStanding { standing in
            guard standing.historyToConfirm != nil, try leaseOfOther(than: owner, now: now) == nil
            else { return false }
            standing.confirmHistory()
            return true
        }
    }
}
