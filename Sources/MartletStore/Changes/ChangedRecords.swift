public import MartletModel
package import SQLiteKit

/// The changed records of one table.
public struct ChangedRecords: Sendable {
    /// Keys of new records.
    public internal(set) var inserted: Set<RecordID> = []
    /// Keys of records with new values.
    public internal(set) var updated: Set<RecordID> = []
    /// Keys of records that are gone.
    public internal(set) var deleted: Set<RecordID> = []
    /// False when more records may have changed than are listed: many, or such whose keys SQLite
    /// does not tell (a table without rowids; a REPLACE; records with text keys that are gone,
    /// where the change was not captured).
    public internal(set) var isComplete = true
    /// By which observations of single records find theirs.
    var rowIDs: Set<Int64> = []

    /// Keys and rows kept, when changes are taken together.
    package static let capacity = 10_000

    package init() {}

    /// - Parameters:
    ///   - gone: Keys known to be gone, where rows do not tell theirs.
    ///   - key: The key of the record in a row; nil where the row is gone.
    package init(
        _ rows: ChangeCollector.Rows, gone: Set<RecordID> = [], key: (Int64) -> RecordID?
    ) {
        isComplete = rows.isComplete
        deleted = gone
        var keyless = 0
        for (rowID, operation) in rows.operations {
            // One that came and went counts as well: it may have taken the place of another.
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
        // What is not in the lists cannot be told from the listed rows alone.
        allRows = !rows.isComplete
    }

    /// Records of a table whose rows SQLite does not tell of: any may have changed.
    package static var any: ChangedRecords {
        var changed = ChangedRecords()
        changed.isComplete = false
        changed.allRows = true
        return changed
    }

    /// Puts keys known otherwise in place of those read from the rows.
    package mutating func setKeys(of other: ChangedRecords) {
        inserted = other.inserted
        updated = other.updated
        deleted = other.deleted
        isComplete = true
    }

    /// Adds what a transaction did to one record.
    package mutating func note(_ id: RecordID, _ operation: RecordOperation) {
        switch operation {
        case .create: inserted.insert(id)
        case .update: updated.insert(id)
        case .delete: deleted.insert(id)
        }
    }

    /// Whether rows beyond `rowIDs` may have changed.
    var allRows = false

    /// Whether any of these rows may have changed.
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
            // New and gone again: nobody who looked before or after has seen it.
            if inserted.remove(key) == nil { deleted.insert(key) }
        }
    }
}
