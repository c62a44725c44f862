internal import CSQLite

/// A collector of the rows that a connection's transaction has changed, by table and rowid.
/// SQLite's update hook reports them.
///
/// The collector is bounded. If more than `capacity` rows of a table changed, it only knows that.
/// It never lists tables without rowids and virtual tables.
public final class ChangeCollector {
    /// The effect of all changes of the transaction on a row.
    public enum Operation: Sendable {
        case insert
        case update
        case delete
        /// The row was inserted and deleted again.
        case passing
    }

    /// The rows of one table.
    public struct Rows: Sendable {
        public fileprivate(set) var operations: [Int64: Operation] = [:]
        /// Whether all changed rows are listed. False if more rows changed than that.
        public fileprivate(set) var isComplete = true

        fileprivate var isEmpty: Bool { operations.isEmpty && isComplete }
    }

    /// Whether the collector lists rows. If not, it only knows the tables, which costs next to
    /// nothing.
    public var listsRows = true
    private let capacity: Int
    private let ignoredPrefix: String
    private var names: [String] = []
    private var rows: [Rows] = []
    private var indexes: [String: Int] = [:]
    /// The table of the last report. SQLite passes the same pointer for a table until its schema
    /// changes. Every take clears it.
    private var lastTable: UnsafePointer<CChar>?
    private var lastIndex: Int?
    /// The notes since the first mark, so that they can be undone.
    private var journal: [Undo] = []
    private var marks = 0

    private struct Undo {
        let index: Int
        /// The row; nil if only `wasComplete` is to be restored.
        let rowID: Int64?
        let operation: Operation?
        let wasComplete: Bool
    }

    /// Makes an empty collector.
    /// - Parameters:
    ///   - capacity: The number of rows listed for each table.
    ///   - ignoredPrefix: The prefix of the names of tables that are left out.
    public init(capacity: Int = 10_000, ignoredPrefix: String) {
        self.capacity = capacity
        self.ignoredPrefix = ignoredPrefix
    }

    /// Returns the changes collected since the last call, by table, and clears them.
    /// - Complexity: O(*n*) in the number of tables.
    public func take() -> [String: Rows] {
        var taken: [String: Rows] = [:]
        for (name, rows) in zip(names, rows) where !rows.isEmpty { taken[name] = rows }
        clear()
        return taken
    }

    /// Clears the collected changes. Call it after a rollback.
    public func clear() {
        names.removeAll(keepingCapacity: true)
        rows.removeAll(keepingCapacity: true)
        indexes.removeAll(keepingCapacity: true)
        lastTable = nil
        lastIndex = nil
        journal.removeAll()
        marks = 0
    }

    /// Returns whether a table is left out.
    func ignores(_ table: String) -> Bool { table.hasPrefix(ignoredPrefix) }

    /// Notes that any row of a table may have changed.
    public func noteAll(_ table: String) {
        guard !table.hasPrefix(ignoredPrefix) else { return }
        let index = index(of: table)
        remember(index, rowID: nil)
        rows[index].isComplete = false
    }

    /// Whether nothing was collected.
    /// - Complexity: O(*n*) in the number of tables.
    public var isEmpty: Bool { rows.allSatisfy(\.isEmpty) }

    /// Begins a part of the transaction that may be undone. Parts may be nested.
    /// - Returns: The mark for `rollBack(to:)`. Each mark is followed by that call or by
    ///   `release()`.
    public func mark() -> Int {
        marks += 1
        return journal.count
    }

    /// Ends a part whose changes stay.
    public func release() {
        marks = max(0, marks - 1)
        if marks == 0 { journal.removeAll() }
    }

    /// Ends a part that was undone, and forgets the notes since its mark.
    /// - Complexity: O(*n*) in the notes since the mark.
    public func rollBack(to mark: Int) {
        while journal.count > mark {
            let undo = journal.removeLast()
            if let rowID = undo.rowID { rows[undo.index].operations[rowID] = undo.operation }
            rows[undo.index].isComplete = undo.wasComplete
        }
        release()
    }

    /// Stores the present note of a row before a new one replaces it.
    private func remember(_ index: Int, rowID: Int64?) {
        guard marks > 0 else { return }
        journal.append(
            Undo(
                index: index, rowID: rowID, operation: rowID.flatMap { rows[index].operations[$0] },
                wasComplete: rows[index].isComplete))
    }

    fileprivate func note(_ action: Int32, table: UnsafePointer<CChar>, rowID: Int64) {
        if table != lastTable {
            lastTable = table
            let name = String(cString: table)
            lastIndex = name.hasPrefix(ignoredPrefix) ? nil : index(of: name)
        }
        guard let index = lastIndex else { return }
        guard listsRows else {
            guard rows[index].isComplete else { return }
            remember(index, rowID: nil)
            rows[index].isComplete = false
            return
        }
        let new: Operation =
            switch action {
            case SQLITE_INSERT: .insert
            case SQLITE_DELETE: .delete
            default: .update
            }
        // A change that alters no note is not journaled, because a transaction may be of any size.
        let old = rows[index].operations[rowID]
        if old == nil, rows[index].operations.count >= capacity {
            guard rows[index].isComplete else { return }
            remember(index, rowID: nil)
            rows[index].isComplete = false
            return
        }
        let merged: Operation =
            switch (old, new) {
            case (.insert, .update): .insert
            case (.insert, .delete): .passing
            case (.delete, .insert): .update
            default: new
            }
        guard merged != old else { return }
        remember(index, rowID: rowID)
        rows[index].operations[rowID] = merged
    }

    private func index(of table: String) -> Int {
        if let known = indexes[table] { return known }
        names.append(table)
        rows.append(Rows())
        indexes[table] = names.count - 1
        return names.count - 1
    }
}

extension Connection {
    /// The collector that changed rows are reported to; nil if there is none.
    public var changeCollector: ChangeCollector? { handle.changeCollector }

    /// Reports every row that this connection changes to `collector`, in place of an earlier one.
    /// Pass nil to report no more.
    public func report(to collector: ChangeCollector?) {
        handle.changeCollector = collector
        handle.accessCollector?.rows = collector
        guard let collector else {
            _ = sqlite3_update_hook(handle.pointer, nil, nil)
            return
        }
        // The handle holds the collector for as long as the hook is set.
        let context = Unmanaged.passUnretained(collector).toOpaque()
        _ = sqlite3_update_hook(
            handle.pointer,
            { context, action, _, table, rowID in
                guard let context, let table else { return }
                Unmanaged<ChangeCollector>.fromOpaque(context).takeUnretainedValue()
                    .note(action, table: table, rowID: rowID)
            }, context)
    }
}
