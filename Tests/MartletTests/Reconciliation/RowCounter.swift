import MartletStore
import SQLiteKit

@testable import Martlet
@testable import MartletDevice

/// Counts the app's rows that each transaction of remote change writes.
final class RowCounter: TransactionObserver {
    private let collector = ChangeCollector(ignoredPrefix: "martlet_")
    /// The counts of the committed transactions, in order.
    private(set) var rows: [Int] = []

    init(_ store: DeviceStore) {
        store.applying.connection.report(to: collector)
        store.observer = self
    }

    func saveWillCommit(_ changes: [RecordChange], in context: WriteContext) {}
    func applyingHasBegun() { collector.clear() }
    func applyingWillCommit(_ report: RebaseReport?) {}

    func rulesHaveChanged() {}

    func applyingHasEnded(isCommitted: Bool) {
        let changed = collector.take().values.reduce(0) { $0 + $1.operations.count }
        if isCommitted { rows.append(changed) }
    }
}
