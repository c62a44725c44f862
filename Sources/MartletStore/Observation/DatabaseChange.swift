public import MartletProtocol
package import SQLiteKit

/// What one commit changed, or several taken together.
public struct DatabaseChange: Sendable {
    /// Why the data changed.
    public struct Causes: OptionSet, Hashable, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// A save through this client or pool.
        public static let local = Causes(rawValue: 1)
        /// Others' changes arrived.
        public static let remote = Causes(rawValue: 2)
        /// An own change set was refused, and its edits were taken back.
        public static let refused = Causes(rawValue: 4)
        /// Temporary ids became permanent.
        public static let idsAssigned = Causes(rawValue: 8)
        /// Another process or connection wrote to the file.
        public static let elsewhere = Causes(rawValue: 16)
    }

    /// Why; several where changes were taken together.
    public internal(set) var causes: Causes
    /// The changed records, by table.
    public internal(set) var tables: [String: ChangedRecords]
    /// Whether more may have changed than is listed, as when another process wrote.
    public internal(set) var isUnbounded: Bool

    package init(causes: Causes, tables: [String: ChangedRecords], isUnbounded: Bool = false) {
        self.causes = causes
        self.tables = tables
        self.isUnbounded = isUnbounded
    }

    /// Takes a later change together with this one.
    mutating func add(_ later: DatabaseChange) {
        causes.formUnion(later.causes)
        isUnbounded = isUnbounded || later.isUnbounded
        for (name, changed) in later.tables {
            tables[name, default: ChangedRecords()].add(changed)
        }
    }
}

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
    static let capacity = 10_000

    package init() {}

    package init(_ rows: ChangeCollector.Rows, key: (Int64) -> RecordID?) {
        isComplete = rows.isComplete
        for (rowID, operation) in rows.operations {
            rowIDs.insert(rowID)
            guard let key = key(rowID) else {
                isComplete = false
                continue
            }
            switch operation {
            case .insert: inserted.insert(key)
            case .update: updated.insert(key)
            case .delete: deleted.insert(key)
            }
        }
        // What is not in the lists cannot be told from the listed rows alone.
        allRows = !rows.isComplete
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
