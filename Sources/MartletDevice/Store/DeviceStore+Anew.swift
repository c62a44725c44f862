package import MartletModel
internal import MartletProtocol
internal import MartletStore
package import SQLiteKit
internal import SQLiteRecords

/// Fetching everything once more, under what the device has yet to send.
///
/// It is the way out where a device's tables cannot be brought to a new schema. The file keeps its
/// identity, its queue, its refused sets, its id map and its receipts; the app's tables are made
/// anew, empty, and the change log is fetched from the beginning by ordinary exchanges. Until the
/// device is as far as it was before, it sends nothing, and a queued set that cannot be applied to
/// what has arrived waits for the rest.
extension DeviceStore {
    /// The revision the device had when it began anew, and is on its way back to; nil when it is
    /// as far again, or never began anew.
    package var fetchingAnew: Revision? {
        get throws { try applying.integerState(Self.anewRevision) }
    }

    /// Empties a device's file of all that the server can send again, and has its tables made anew.
    ///
    /// One transaction: whatever happens, the file is as it was or has begun anew. Nothing else may
    /// have the file open. Open it afterwards as ever; the exchanges that follow fetch what is
    /// missing.
    /// - Parameters:
    ///   - now: Milliseconds since 1970, for edits of other programs that are still to be queued.
    ///   - randomBits: The source of identities.
    ///   - make: Makes the app's tables, empty, on the connection it gets, in that transaction.
    /// - Throws: What `make` throws; `StoreError` `.file` where there is no device's file,
    ///   `.schema` for tables that cannot be synchronised; `SQLiteError` where the file itself
    ///   fails.
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

    /// Begins anew with the tables of a script, and opens the file.
    /// - Parameter script: The app's DDL.
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
    /// The hash of the history the device was in, and the revision it is of.
    static let anewLineage = "anewLineage"
    static let anewGoal = "anewGoal"
    /// Set once the server has said, before anything was fetched, that this history is its own.
    static let anewAsked = "anewAsked"
}

// MARK: - On the way back

extension DeviceStore {
    /// What is asked after a beginning anew, before anything is fetched and again once all is there:
    /// whether the server's history is still the one the device was in. Nobody else could tell, and
    /// queued edits would be taken for edits of other records.
    var historyToConfirm: (revision: Revision, lineage: String)? {
        get throws {
            // Who comes back to a restored server knows that it is not.
            guard try rejoining == nil, let history = try historyBefore else { return nil }
            let isAsked = try applying.integerState(Self.anewAsked) != nil
            return try fetchingAnew != nil && isAsked ? nil : history
        }
    }

    /// The history that what is queued was made in, from a beginning anew until the server has said
    /// that it is its own.
    var historyBefore: (revision: Revision, lineage: String)? {
        get throws {
            guard let lineage = try applying.textState(Self.anewLineage),
                let revision = try applying.integerState(Self.anewGoal) ?? fetchingAnew
            else { return nil }
            return (revision, lineage)
        }
    }

    /// Notes the history the device is in, or the newest place in it whose hash is remembered.
    private func noteHistoryToConfirm(_ reached: Revision) throws {
        // It may have begun anew before, and not heard yet.
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

    /// Books that the server's history is the one the device was in. The entries of that answer
    /// are newer than those the device needs next.
    /// - Returns: Whether this was still to be known.
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

    /// Nothing is to be asked any more.
    func forgetHistoryBefore() throws {
        for name in [Self.anewLineage, Self.anewGoal, Self.anewAsked] {
            try applying.setState(name, .null)
        }
    }

    /// Whether an answer cannot lead back to where the device was: the server's log ends before.
    func endsTooEarly(_ answer: SyncAnswer) throws -> Bool {
        guard !answer.more, try rejoining == nil, let goal = try fetchingAnew else { return false }
        return answer.maxRevision < goal
    }
}
