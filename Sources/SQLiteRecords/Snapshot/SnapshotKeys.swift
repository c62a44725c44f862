package import MartletModel
package import SQLiteKit

/// A range of record keys.
package struct SnapshotKeys: Hashable, Sendable {
    /// The key before the range; nil if the range starts at the first record.
    package var after: RecordID?
    /// The last key of the range; nil if the range goes to the end.
    package var last: RecordID?

    package init(after: RecordID? = nil, last: RecordID? = nil) {
        self.after = after
        self.last = last
    }

    /// Whether the range has all keys.
    package var isAll: Bool { after == nil && last == nil }

    /// Returns the condition on a column, to be added to another one. Its parameters are `?1` and
    /// `?2`.
    package func condition(_ column: String) -> String {
        (after == nil ? "" : " AND \(column) > ?1") + (last == nil ? "" : " AND \(column) <= ?2")
    }

    /// Binds the parameters of the condition in a statement.
    package func bind(to statement: Statement) {
        if let after { statement.bind(1, after) }
        if let last { statement.bind(2, last) }
    }
}
