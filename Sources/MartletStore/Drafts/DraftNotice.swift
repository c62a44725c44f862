public import MartletModel

/// A notice to an open draft that its record is about to change. The transaction that changes it
/// has not been committed yet.
public struct DraftNotice: Sendable {
    /// A field that changes in the store.
    public struct Field: Hashable, Sendable {
        /// The column's name.
        public let name: String
        /// Its value when the draft last agreed with the store.
        public let base: SQLValue
        /// Its value in the draft.
        public let mine: SQLValue
        /// Its coming value in the store.
        public let theirs: SQLValue

        /// Whether it was edited in the draft, to another value than the store will have.
        public var isConflict: Bool { mine != base && mine != theirs }
    }

    /// The table's name.
    public let table: String
    /// The record's key; nil if its value cannot be a record's id.
    public let key: RecordID?
    /// The reasons for the change.
    public let causes: DatabaseChange.Causes
    /// The fields that change; empty if the record is deleted.
    public let fields: [Field]
    /// Whether the record is about to be deleted.
    public let isDeletion: Bool
}
