package import MartletModel
import Synchronization

/// Reports rows that devices cannot receive: an external write gave them text that is not UTF-8,
/// binary data in a column without it, or an infinity.
///
/// Such a row is left out of differences, snapshots and comparisons, and leaves the views that show a part
/// of its type. Devices that see all of the type keep what they have of it. Everything else is
/// synchronised.
package final class UnsendableRows: Sendable {
    /// A row and the reason why it is left out.
    package struct Row: Hashable, Sendable {
        package let type: String
        package let id: RecordID
        /// The reason, which names the column and has no values.
        package let reason: String
    }

    private struct Record: Hashable {
        let type: String
        let id: RecordID
    }

    /// The most rows that are remembered as reported. With more, rows are reported again.
    private static let mostKnown = 10_000

    private let known = Mutex<Set<Record>>([])
    private let report: @Sendable (_ row: Row, _ isNew: Bool) -> Void

    /// Makes an empty collection.
    ///
    /// - Parameter report: Called each time a row is left out, on the thread that reads. `isNew` is
    ///   true the first time for a row.
    package init(report: @escaping @Sendable (_ row: Row, _ isNew: Bool) -> Void = { _, _ in }) {
        self.report = report
    }

    /// Notes and reports a row that is left out.
    package func note(_ type: String, _ id: RecordID, _ reason: String) {
        let isNew = known.withLock { known in
            if known.count >= Self.mostKnown { known.removeAll() }
            return known.insert(Record(type: type, id: id)).inserted
        }
        report(Row(type: type, id: id, reason: reason), isNew)
    }
}
