internal import CSQLite

/// The rows a connection's transaction has changed, by table and rowid, as SQLite's update hook
/// tells them.
///
/// Bounded: from a table of which more than `capacity` rows changed, only that is known. Tables
/// without rowids and virtual tables never show here.
public final class ChangeCollector {
    /// What happened to a row, all changes of the transaction taken together.
    public enum Operation: Sendable {
        case insert
        case update
        case delete
        /// Inserted and deleted again.
        case passing
    }

    /// The rows of one table.
    public struct Rows: Sendable {
        public fileprivate(set) var operations: [Int64: Operation] = [:]
        /// False when more rows changed than are listed.
        public fileprivate(set) var isComplete = true

        fileprivate var isEmpty: Bool { operations.isEmpty && isComplete }
    }

    /// Whether the rows are listed. Without it, only the tables are known: for as long as nobody
    /// wants to know, this costs next to nothing.
    public var listsRows = true
    private let capacity: Int
    private let ignoredPrefix: String
    private var names: [String] = []
    private var rows: [Rows] = []
    private var indexes: [String: Int] = [:]
    /// The table of the last report. SQLite hands out the same pointer for a table until its schema
    /// changes; cleared with every take.
    private var lastTable: UnsafePointer<CChar>?
    private var lastIndex: Int?
    /// What was noted since the first mark, so that it can be taken back.
    private var journal: [Undo] = []
    private var marks = 0

    private struct Undo {
        let index: Int
        /// nil where only `wasComplete` is to be put back.
        let rowID: Int64?
        let operation: Operation?
        let wasComplete: Bool
    }

    /// - Parameters:
    ///   - capacity: Rows listed for one table.
    ///   - ignoredPrefix: Tables named so are left out.
    public init(capacity: Int = 10_000, ignoredPrefix: String) {
        self.capacity = capacity
        self.ignoredPrefix = ignoredPrefix
    }

    /// Takes what was collected since the last call, by table.
    public func take() -> [String: Rows] {
        var taken: [String: Rows] = [:]
        for (name, rows) in zip(names, rows) where !rows.isEmpty { taken[name] = rows }
        clear()
        return taken
    }

    /// Forgets what was collected; call it after a rollback.
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
    public var isEmpty: Bool { rows.allSatisfy(\.isEmpty) }

    /// Begins a part of the transaction that may be taken back. Parts may be nested.
    /// - Returns: What to give to `rollBack(to:)`; each mark is followed by that or by `release()`.
    public func mark() -> Int {
        marks += 1
        return journal.count
    }

    /// Ends a part that stays.
    public func release() {
        marks = max(0, marks - 1)
        if marks == 0 { journal.removeAll() }
    }

    /// Ends a part that was taken back: forgets what was noted since its mark.
    public func rollBack(to mark: Int) {
        while journal.count > mark {
            let undo = journal.removeLast()
            if let rowID = undo.rowID { rows[undo.index].operations[rowID] = undo.operation }
            rows[undo.index].isComplete = undo.wasComplete
        }
        release()
    }

    /// Keeps what is known of a row, before it is noted anew.
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
        // A change that alters nothing known is not noted, because a transaction may be of any
        // size.
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
    /// What the rows this connection changes are reported to; nil for nothing.
    public var changeCollector: ChangeCollector? { handle.changeCollector }

    /// Reports every row this connection changes to `collector`, until another is given or nil.
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
