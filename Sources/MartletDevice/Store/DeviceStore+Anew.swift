package import MartletModel
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
    /// The revision that the device had when it began to fetch everything again; nil if it has
    /// reached it, or never began.
    package var fetchingAnew: Revision? {
        get throws { try applying.integerState(Self.anewRevision) }
    }

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
    package static func beginAnew(
        path: String, vfs: String? = nil, now: Int64, randomBits: @escaping () -> UInt64,
        making make: (Connection) throws -> Void
    ) throws {
        try checkFile(path: path, vfs: vfs)
        let old = try DeviceStore(path: path, script: nil, vfs: vfs, randomBits: randomBits)
        let store = old.applying
        try store.connection.transaction {
            try old.closeExternalCapture(store, now: now)
            let reached = try old.revision
            if reached > 0, try old.fetchingAnew == nil {
                try store.setState(anewRevision, .integer(reached))
                try old.noteHistoryToConfirm(reached)
            }
            try store.setState(anewAsked, .null)
            try store.setState("revision", .integer(0))
            try store.setState("lineage", .null)
            try store.connection.execute(
                """
                DELETE FROM martlet_records; DELETE FROM martlet_base; DELETE FROM martlet_lease;
                DELETE FROM martlet_quarantine;
                UPDATE martlet_outbox SET applied = 0, settling = 0;
                UPDATE martlet_withheld SET shows = 0;
                """)
            try old.clearStaged()
            try old.endSlices()
            try PendingParts(store: store).clear()
            try store.replaceTables(make)
        }
    }

    /// Empties the file as above, makes the tables of a script, and opens the file.
    /// - Parameter script: The app's DDL.
    /// - Throws: `StoreError`, or `SQLiteError` if the file itself fails.
    package static func beginAnew(
        path: String, script: String, vfs: String? = nil, now: Int64,
        randomBits: @escaping () -> UInt64
    ) throws -> DeviceStore {
        try beginAnew(path: path, vfs: vfs, now: now, randomBits: randomBits) { connection in
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
                .file, "Only a device's file can begin anew; this one was never set up as one.")
        }
    }

    static let anewRevision = "anewRevision"
    /// The keys of the former history's hash, and of the revision that it belongs to.
    static let anewLineage = "anewLineage"
    static let anewGoal = "anewGoal"
    /// The key of a mark that is set once the server has confirmed this history, before anything
    /// was fetched.
    static let anewAsked = "anewAsked"
}

// MARK: - On the way back

extension DeviceStore {
    /// The history that the next request has to ask for, before everything is fetched again and
    /// once more when all is here: whether the server's history is still the device's former one.
    /// Without this check the server could take queued edits for edits of other records.
    var historyToConfirm: (revision: Revision, lineage: String)? {
        get throws {
            // A device that rejoins a restored server knows that the history is another one.
            guard try rejoining == nil, let history = try historyBefore else { return nil }
            let isAsked = try applying.integerState(Self.anewAsked) != nil
            return try fetchingAnew != nil && isAsked ? nil : history
        }
    }

    /// The history in which the queued sets were made, from the emptying of the file until the
    /// server has confirmed that it is its own.
    var historyBefore: (revision: Revision, lineage: String)? {
        get throws {
            guard let lineage = try applying.textState(Self.anewLineage),
                let revision = try applying.integerState(Self.anewGoal) ?? fetchingAnew
            else { return nil }
            return (revision, lineage)
        }
    }

    /// Notes the device's history, or the newest revision in it whose hash is remembered.
    private func noteHistoryToConfirm(_ reached: Revision) throws {
        // The file may have been emptied before, without a confirmation since.
        guard try historyBefore == nil else { return }
        var place = reached
        var lineage = try applying.textState("lineage")
        if lineage == nil {
            let find = try applying.connection.statement(
                "SELECT revision, lineage FROM martlet_lineages ORDER BY revision DESC LIMIT 1")
            defer { find.reset() }
            if try find.step() { (place, lineage) = (find.integer(0), find.text(1)) }
        }
        try applying.setState(Self.anewLineage, lineage.map { .text($0) } ?? .null)
        try applying.setState(Self.anewGoal, .integer(place))
    }

    /// Notes that the server's history is the device's former one. The entries of that answer are
    /// newer than those that the device needs next.
    /// - Returns: Whether this was still unknown.
    func confirmHistory(owner: String, now: Int64) throws -> Bool {
        try inApplyingTransaction {
            guard try historyToConfirm != nil, try leaseOfOther(than: owner, now: now) == nil
            else { return false }
            if try fetchingAnew == nil {
                try forgetHistoryBefore()
            } else {
                try applying.setState(Self.anewAsked, .integer(1))
            }
            return true
        }
    }

    /// Forgets the former history, because nothing is to be asked any more.
    func forgetHistoryBefore() throws {
        for name in [Self.anewLineage, Self.anewGoal, Self.anewAsked] {
            try applying.setState(name, .null)
        }
    }

    /// Returns whether an answer cannot lead to the device's former revision, because the server's
    /// log ends before it.
    func endsTooEarly(_ answer: SyncAnswer) throws -> Bool {
        guard !answer.more, try rejoining == nil, let goal = try fetchingAnew else { return false }
        return answer.maxRevision < goal
    }
}
