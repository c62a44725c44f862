public import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// What is done to one row.
public struct RowWrite: Sendable {
    /// Kinds of writes.
    public enum Operation: Hashable, Sendable {
        case insert
        case update
        case delete
    }

    /// What is done.
    public let operation: Operation
    /// The table written.
    public let table: String
    /// The record's key; nil before an insert whose key the database makes, and where the key is
    /// of several columns.
    public private(set) var key: RecordID?
    /// The values of the key's columns, where they are known.
    public let keyValues: RecordValues
    /// The values written; nil for a delete.
    public let values: RecordValues?

    init(
        operation: Operation, table: String, key: RecordID?, keyValues: RecordValues = [:],
        values: RecordValues?
    ) {
        self.operation = operation
        self.table = table
        self.key = key
        self.keyValues = keyValues
        self.values = values
    }

    /// The same, with a key that the database has made.
    func made(_ key: RecordID?) -> RowWrite {
        var write = self
        write.key = self.key ?? key
        return write
    }
}

/// What became of the write of one row.
enum RowOutcome {
    /// The row was written, under a key that the database has made, if it made one.
    case written(RecordID?)
    /// Nothing was written: there is no such row, or SQLite has passed it over, because a constraint's ON CONFLICT IGNORE
    /// or a trigger's RAISE(IGNORE) says so.
    case notWritten

    var isWritten: Bool {
        if case .written = self { true } else { false }
    }

    init(isWritten: Bool) { self = isWritten ? .written(nil) : .notWritten }

    /// The refusal of what must not be left out silently.
    static func passedOver(_ table: String, _ key: RecordID?) -> StoreError {
        var error = StoreError(
            .constraint,
            "SQLite has passed a record of “\(table)” over, as a constraint (ON CONFLICT IGNORE) or a trigger"
                + " (RAISE(IGNORE)) says. Give it other values.")
        error.table = table
        error.key = key
        return error
    }
}

/// Where all writes through tables and contexts can be watched, refused, and added to: the aspect
/// points before and after insert, update and delete.
///
/// Hooks run inside the save's transaction, in the order in which they were added; what they write
/// through the context belongs to the same save, and is itself hooked. A hook that throws refuses
/// the write: the save throws the same error, and nothing of it stays. The hooks after a write run
/// only where there was a row to write. Statements given as SQL text pass by them.
public struct WriteHooks: Sendable {
    /// One hook.
    public typealias Hook = @Sendable (RowWrite, WriteContext) throws -> Void

    private struct Entry: Sendable {
        let table: String?
        let operations: Set<RowWrite.Operation>
        let hook: Hook
    }

    /// Writes within hooks of writes within hooks, and so on; more can only be a hook that sets
    /// itself off.
    static let deepest = 32

    private var befores: [Entry] = []
    private var afters: [Entry] = []

    public init() {}

    /// Adds a hook that runs before a row is written.
    /// - Parameters:
    ///   - operations: What to watch.
    ///   - table: The table to watch; nil for all.
    ///   - hook: Runs with each such write; what it throws refuses the write.
    public mutating func before(
        _ operations: Set<RowWrite.Operation>, of table: String? = nil, _ hook: @escaping Hook
    ) {
        befores.append(Entry(table: table, operations: operations, hook: hook))
    }

    /// Adds a hook that runs after a row was written.
    /// - Parameters:
    ///   - operations: What to watch.
    ///   - table: The table to watch; nil for all.
    ///   - hook: Runs with each such write; what it throws refuses the write.
    public mutating func after(
        _ operations: Set<RowWrite.Operation>, of table: String? = nil, _ hook: @escaping Hook
    ) {
        afters.append(Entry(table: table, operations: operations, hook: hook))
    }

    /// Whether any hook watches a table for an operation.
    func watch(_ operation: RowWrite.Operation, _ table: String) -> Bool {
        (befores.count + afters.count) > 0
            && (befores + afters).contains { Self.suits($0, operation, table) }
    }

    func runBefore(_ write: RowWrite, in context: WriteContext) throws {
        try run(befores, write, context)
    }

    func runAfter(_ write: RowWrite, in context: WriteContext) throws {
        try run(afters, write, context)
    }

    /// - Throws: The error of a hook. If the store made it while the hook ran, its message says so;
    ///   a veto of the hook stays as it is.
    private func run(
        _ entries: [Entry], _ write: RowWrite, _ context: WriteContext
    ) throws {
        for entry in entries where Self.suits(entry, write.operation, write.table) {
            do {
                try entry.hook(write, context)
            } catch let error as StoreError where error.kind != .vetoed {
                throw error.met(byHookOf: write.table)
            }
        }
    }

    var isEmpty: Bool { befores.isEmpty && afters.isEmpty }

    private static func suits(
        _ entry: Entry, _ operation: RowWrite.Operation, _ table: String
    ) -> Bool {
        guard entry.operations.contains(operation) else { return false }
        guard let watched = entry.table, watched != table else { return true }
        return SQLName.folded(watched) == SQLName.folded(table)
    }
}

extension WriteContext {
    /// Writes one row between its hooks. Those after the write run only if the row was written.
    /// - Throws: `StoreError` with the record's key; what a hook throws.
    @discardableResult
    func hooked(_ write: RowWrite, _ body: () throws -> RowOutcome) throws -> RowOutcome {
        if session.hooks.isEmpty { return try describing(write, body) }
        guard hookDepth < WriteHooks.deepest else {
            throw StoreError(
                .misuse,
                "Hooks wrote within hooks \(WriteHooks.deepest) deep, so one sets itself off without"
                    + " end; give it a condition.")
        }
        hookDepth += 1
        defer { hookDepth -= 1 }
        return try describing(write) {
            try session.hooks.runBefore(write, in: self)
            let outcome = try body()
            if case .written(let made) = outcome {
                try session.hooks.runAfter(write.made(made), in: self)
            }
            return outcome
        }
    }

    /// Adds to an error what is known of the row.
    private func describing<Result>(
        _ write: RowWrite, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch {
            var known = StoreError.of(
                error, table: write.table, key: write.key, values: write.values?.values ?? [])
            if var refusal = known as? StoreError, refusal.constraint?.kind == .foreignKey,
                refusal.constraint?.columns.isEmpty == true
            {
                refusal.constraint?.columns = session.violatedReferences(write)
                known = refusal
            }
            throw known
        }
    }
}
