public import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// A write of one row.
public struct RowWrite: Sendable {
    /// The kinds of writes.
    public enum Operation: Hashable, Sendable {
        case insert
        case update
        case delete
    }

    /// The kind of the write.
    public let operation: Operation
    /// The name of the table.
    public let table: String
    /// The record's key. It is nil if the key has several columns, and before an insert for which
    /// the database makes the key.
    public private(set) var key: RecordID?
    /// The values of the key's columns; empty if they are not known.
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

    /// Returns the same write with a key that the database has made.
    func made(_ key: RecordID?) -> RowWrite {
        var write = self
        write.key = self.key ?? key
        return write
    }
}

/// The outcome of the write of one row.
enum RowOutcome {
    /// The row was written. If the database made its key, this is the key.
    case written(RecordID?)
    /// Nothing was written, because there is no such row, or because SQLite skipped it for a
    /// constraint's ON CONFLICT IGNORE or a trigger's RAISE(IGNORE).
    case notWritten

    var isWritten: Bool {
        if case .written = self { true } else { false }
    }

    init(isWritten: Bool) { self = isWritten ? .written(nil) : .notWritten }

    /// Returns the error for a record that SQLite skipped, if the caller does not allow this.
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

/// Functions that run before and after each insert, update and delete through tables and contexts.
/// They can watch these writes, refuse them, and add writes of their own.
///
/// ```swift
/// var hooks = WriteHooks()
/// hooks.before([.insert, .update], of: "players") { write, _ in
///     if case .null = try write.written("name", as: String.self) {
///         throw StoreError(.vetoed, "A player needs a name; type one.")
///     }
/// }
/// ```
///
/// Hooks run inside the save's transaction, in the order in which the app added them. Their own
/// writes through the context belong to the same save, and run hooks too. If a hook throws, the
/// write throws this error, and the save is undone unless the closure catches the error. Hooks
/// after a write run only if the row was written. Statements given as SQL text do not run hooks.
public struct WriteHooks: Sendable {
    /// A hook. If it throws, the write throws too.
    public typealias Hook = @Sendable (RowWrite, WriteContext) throws -> Void

    private struct Entry: Sendable {
        let table: String?
        let operations: Set<RowWrite.Operation>
        let hook: Hook
    }

    /// How deep writes of hooks may be nested. Deeper nesting means that a hook triggers itself.
    static let deepest = 32

    private var befores: [Entry] = []
    private var afters: [Entry] = []

    public init() {}

    /// Adds a hook that runs before a row is written.
    /// - Parameters:
    ///   - operations: The kinds of writes to watch.
    ///   - table: The table to watch; nil for all tables.
    ///   - hook: The function that runs before each such write. If it throws, the row is not
    ///     written.
    public mutating func before(
        _ operations: Set<RowWrite.Operation>, of table: String? = nil, _ hook: @escaping Hook
    ) {
        befores.append(Entry(table: table, operations: operations, hook: hook))
    }

    /// Adds a hook that runs after a row was written.
    /// - Parameters:
    ///   - operations: The kinds of writes to watch.
    ///   - table: The table to watch; nil for all tables.
    ///   - hook: The function that runs after each such write. An error that it throws makes the
    ///     write throw.
    public mutating func after(
        _ operations: Set<RowWrite.Operation>, of table: String? = nil, _ hook: @escaping Hook
    ) {
        afters.append(Entry(table: table, operations: operations, hook: hook))
    }

    /// Returns whether any hook watches a table for an operation.
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

    /// Runs the hooks for a write.
    /// - Throws: The error of a hook. If the store threw it while the hook ran, its message names
    ///   the hook's table. A veto of the hook stays as it is.
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
    /// Writes one row between its hooks. The hooks after the write run only if the row was written.
    /// - Throws: `StoreError` with the record's key; any error of a hook.
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

    /// Adds the row's table, key and values to an error of `body`.
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
