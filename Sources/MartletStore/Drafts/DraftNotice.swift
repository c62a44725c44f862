public import MartletModel

/// Word to an open draft that its record is about to change under it: the transaction that does it
/// has not been committed yet.
public struct DraftNotice: Sendable {
    /// A field that gets another value in the store.
    public struct Field: Hashable, Sendable {
        /// The column's name.
        public let name: String
        /// What it was when the draft last agreed with the store.
        public let base: SQLValue
        /// What it is in the draft.
        public let mine: SQLValue
        /// What it will be in the store.
        public let theirs: SQLValue

        /// Whether it was edited in the draft, to something else than the store will have.
        public var isConflict: Bool { mine != base && mine != theirs }
    }

    /// The table.
    public let table: String
    /// The record's key; nil where it is none a record can have.
    public let key: RecordID?
    /// Why it changes.
    public let causes: DatabaseChange.Causes
    /// The fields that change; none when the record is deleted.
    public let fields: [Field]
    /// Whether the record is about to be deleted.
    public let isDeletion: Bool
}
