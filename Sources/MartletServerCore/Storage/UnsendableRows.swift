public import MartletModel
import Synchronization

/// Where rows are told of that no device can be sent: another program wrote text that is not UTF-8
/// into them, binary data where none is declared, or an infinity.
///
/// Such a row is left out of differences, snapshots and comparisons. Devices keep what they have of
/// it, and everything else goes on.
public final class UnsendableRows: Sendable {
    /// One row, and what is the matter with it.
    public struct Row: Hashable, Sendable {
        public let type: String
        public let id: RecordID
        /// Names the column; holds no values.
        public let reason: String
    }

    private struct Record: Hashable {
        let type: String
        let id: RecordID
    }

    /// Rows remembered as told; beyond these, rows are told of again.
    private static let mostKnown = 10_000

    private let known = Mutex<Set<Record>>([])
    private let report: @Sendable (_ row: Row, _ isNew: Bool) -> Void

    /// - Parameter report: Told of each time a row is left out; the first time of a row in this
    ///   object's life, `isNew` is true. Called on whatever thread reads.
    public init(report: @escaping @Sendable (_ row: Row, _ isNew: Bool) -> Void = { _, _ in }) {
        self.report = report
    }

    /// Notes a row that is left out, and tells of it.
    package func note(_ type: String, _ id: RecordID, _ reason: String) {
        let isNew = known.withLock { known in
            if known.count >= Self.mostKnown { known.removeAll() }
            return known.insert(Record(type: type, id: id)).inserted
        }
        report(Row(type: type, id: id, reason: reason), isNew)
    }
}
