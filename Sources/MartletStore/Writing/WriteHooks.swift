public import MartletProtocol

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
    /// The record's key; nil for an insert whose key the database makes.
    public let key: RecordID?
    /// The values written; nil for a delete.
    public let values: RecordValues?
}

/// Where all writes through tables and contexts can be watched, refused, and added to: the aspect
/// points before and after insert, update and delete.
///
/// Hooks run inside the save's transaction, in the order in which they were added; what they write
/// through the context belongs to the same save, and is itself hooked. A hook that throws refuses
/// the write: the save throws the same error, and nothing of it stays. Statements given as SQL text
/// pass by them.
public struct WriteHooks: Sendable {
    /// One hook.
    public typealias Hook = @Sendable (RowWrite, WriteContext) throws -> Void

    private struct Entry: Sendable {
        let table: String?
        let operations: Set<RowWrite.Operation>
        let hook: Hook
    }

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
        for entry in befores where Self.suits(entry, write.operation, write.table) {
            try entry.hook(write, context)
        }
    }

    func runAfter(_ write: RowWrite, in context: WriteContext) throws {
        for entry in afters where Self.suits(entry, write.operation, write.table) {
            try entry.hook(write, context)
        }
    }

    var isEmpty: Bool { befores.isEmpty && afters.isEmpty }

    private static func suits(
        _ entry: Entry, _ operation: RowWrite.Operation, _ table: String
    ) -> Bool {
        entry.operations.contains(operation) && (entry.table ?? table) == table
    }
}

extension WriteContext {
    /// Writes one row between its hooks.
    /// - Throws: `StoreError` with the record's key; what a hook throws.
    @discardableResult
    func hooked<Result>(_ write: RowWrite, _ body: () throws -> Result) throws -> Result {
        let hooks = session.hooks
        do {
            if hooks.isEmpty { return try body() }
            try hooks.runBefore(write, in: self)
            let result = try body()
            try hooks.runAfter(write, in: self)
            return result
        } catch {
            throw StoreError.of(
                error, table: write.table, key: write.key, values: write.values?.values ?? [])
        }
    }
}
