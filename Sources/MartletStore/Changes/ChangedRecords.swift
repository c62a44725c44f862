public import MartletModel
package import SQLiteKit

/// The changed records of one table.
public struct ChangedRecords: Sendable {
    /// The keys of new records.
    public internal(set) var inserted: Set<RecordID> = []
    /// The keys of records with new values.
    public internal(set) var updated: Set<RecordID> = []
    /// The keys of deleted records.
    public internal(set) var deleted: Set<RecordID> = []
    /// Whether the lists are complete. They are not if there are too many changes, or if SQLite
    /// does not report the keys: in a table without rowids, after a REPLACE, or for deleted records
    /// with text keys whose deletion was not captured.
    public internal(set) var isComplete = true
    /// The rowids of changed rows. Observations of single records compare them with their own.
    var rowIDs: Set<Int64> = []

    /// How many rows are listed when changes are combined. Beyond this number, any row may have
    /// changed.
    package static let capacity = 10_000

    package init() {}

    /// Creates the changes from the changed rows of one table.
    /// - Parameters:
    ///   - gone: The keys of deleted records, if they are known although the rows no longer show
    ///     them.
    ///   - key: Returns the key of the record in a row; nil if the row is deleted.
    package init(
        _ rows: ChangeCollector.Rows, gone: Set<RecordID> = [], key: (Int64) -> RecordID?
    ) {
        isComplete = rows.isComplete
        deleted = gone
        var keyless = 0
        for (rowID, operation) in rows.operations {
            // A row that was inserted and deleted again also counts: it may have replaced another
            // row.
            rowIDs.insert(rowID)
            if operation == .passing { continue }
            guard let key = key(rowID) else {
                keyless += 1
                continue
            }
            switch operation {
            case .insert: inserted.insert(key)
            case .update: updated.insert(key)
            case .delete: deleted.insert(key)
            case .passing: break
            }
        }
        if keyless > gone.count { isComplete = false }
        // If the list is incomplete, the listed rows do not show all changes.
        allRows = !rows.isComplete
    }

    /// The change of a table whose rows SQLite does not report: any record may have changed.
    package static var any: ChangedRecords {
        var changed = ChangedRecords()
        changed.isComplete = false
        changed.allRows = true
        return changed
    }

    /// Replaces the keys that were read from the rows with the keys of another list, and marks the
    /// lists as complete.
    package mutating func setKeys(of other: ChangedRecords) {
        inserted = other.inserted
        updated = other.updated
        deleted = other.deleted
        isComplete = true
    }

    /// Adds a transaction's change of one record.
    package mutating func note(_ id: RecordID, _ operation: RecordOperation) {
        switch operation {
        case .create: inserted.insert(id)
        case .update: updated.insert(id)
        case .delete: deleted.insert(id)
        }
    }

    /// Whether other rows than `rowIDs` may have changed.
    var allRows = false

    /// Returns whether any of these rows may have changed.
    func touches(_ rows: Set<Int64>) -> Bool {
        allRows || !rowIDs.isDisjoint(with: rows)
    }

    mutating func add(_ later: ChangedRecords) {
        isComplete = isComplete && later.isComplete
        allRows = allRows || later.allRows
        guard rowIDs.count + later.rowIDs.count <= Self.capacity else {
            isComplete = false
            allRows = true
            return
        }
        rowIDs.formUnion(later.rowIDs)
        for key in later.inserted {
            if deleted.remove(key) != nil { updated.insert(key) } else { inserted.insert(key) }
        }
        updated.formUnion(later.updated.subtracting(inserted))
        for key in later.deleted {
            updated.remove(key)
            // A record that was inserted and deleted again was never visible before or after.
            if inserted.remove(key) == nil { deleted.insert(key) }
        }
    }
}
