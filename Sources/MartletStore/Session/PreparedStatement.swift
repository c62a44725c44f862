internal import SQLiteKit

/// A statement of one's own, prepared once and run as often as needed: the fastest way to write or
/// read many rows. Valid inside the closure of the context it was made by.
///
/// ```swift
/// try await pool.write { context in
///     let insert = try context.prepare("INSERT INTO results (athlete, seconds) VALUES (?, ?)")
///     for result in results { try insert.run(result.athlete, result.seconds) }
/// }
/// ```
///
/// Values are bound, never part of the text. Hooks do not see what it writes; observers do.
public final class PreparedStatement {
    /// The text, with `?` in place of each value.
    public let sql: String
    private let context: ReadContext
    private var statement: Statement
    private var layout: RowLayout
    /// Tables of which the update hook does not tell the rows this writes.
    private let unclearTables: [String]

    init(_ sql: String, _ context: ReadContext) throws {
        let session = context.session
        do {
            self.sql = sql
            self.context = context
            statement = try session.connection.statement(sql)
            try context.check(statement.access)
            layout = session.layout(of: statement)
            unclearTables = session.unclearTables(of: statement)
        } catch {
            throw StoreError.of(error)
        }
    }

    deinit {
        // Lets go of the last values.
        if !statement.isBusy { statement.reset() }
    }

    /// Runs the statement with one value for each `?`; its rows, if it has any, are of no interest.
    /// - Throws: `StoreError`: `.statement` for the wrong number of values, `.constraint`, and the
    ///   others SQLite gives cause for.
    @inlinable
    public func run<each Value: ColumnValue>(_ values: repeat each Value) throws {
        try _begin()
        var index = 0
        for value in repeat each values {
            index += 1
            try value._bind(self, at: index)
        }
        try _run(bound: index)
    }

    /// Runs the statement with values at hand as a list.
    public func run(_ values: [SQLValue]) throws {
        try _begin()
        for (index, value) in values.enumerated() { try _bind(value, at: index + 1) }
        try _run(bound: values.count)
    }

    /// Runs the statement with one value for each `?`, and hands over one row after the other.
    /// - Throws: `StoreError`, and what `body` throws, which ends the query.
    @inlinable
    public func forEachRow<each Value: ColumnValue>(
        _ values: repeat each Value, body: (borrowing Row) throws -> Void
    ) throws {
        try _begin()
        var index = 0
        for value in repeat each values {
            index += 1
            try value._bind(self, at: index)
        }
        try _forEachRow(bound: index, body)
    }

    /// Gets ready for values.
    public func _begin() throws {
        try context.checkValid()
        // Within its own rows it runs as a second one.
        guard statement.isBusy else { return }
        do {
            statement = try context.session.connection.prepare(sql)
            layout = context.session.layout(of: statement)
        } catch {
            throw StoreError.of(error)
        }
    }

    /// Runs what was bound.
    public func _run(bound: Int) throws {
        try checkCount(bound)
        do {
            while try statement.step() {}
        } catch {
            throw StoreError.of(error)
        }
        // The bindings stay until they are given anew: SQLite keeps its memory for them.
        statement.rewind()
        ended(statement)
    }

    /// Runs what was bound, and hands over the rows.
    public func _forEachRow(bound: Int, _ body: (borrowing Row) throws -> Void) throws {
        try checkCount(bound)
        // The body may run it again, and so change `self.statement`.
        let (running, layout) = (statement, layout)
        defer { running.rewind() }
        if let recorder = context.recorder {
            context.session.note(running.access.reads, recorder)
        }
        do {
            while try running.step() { try body(Row(running, layout: layout)) }
        } catch {
            throw StoreError.of(error)
        }
        ended(running)
    }

    private func ended(_ statement: Statement) {
        context.session.noteAll(unclearTables)
        if statement.access.changesSchema { context.session.noteSchemaChange() }
    }

    private func checkCount(_ bound: Int) throws {
        guard bound == Int(statement.parameterCount) else { throw countMismatch() }
    }

    private func countMismatch() -> StoreError {
        StoreError(
            .statement,
            "The statement has \(statement.parameterCount) parameters and got another number of"
                + " values; give one value for each.")
    }
}

// MARK: - Binding

extension PreparedStatement {
    private func parameter(_ index: Int) throws -> Int32 {
        guard index <= Int(statement.parameterCount) else { throw countMismatch() }
        return Int32(index)
    }

    /// Binds an integer, counted from 1.
    public func _bind(integer: Int64, at index: Int) throws {
        statement.bind(try parameter(index), integer: integer)
    }

    /// Binds a real number.
    public func _bind(real: Double, at index: Int) throws {
        statement.bind(try parameter(index), real: real)
    }

    /// Binds a null.
    public func _bindNull(at index: Int) throws {
        statement.bindNull(try parameter(index))
    }

    /// Binds a text.
    public func _bind(text: String, at index: Int) throws {
        guard statement.bindUnlessNUL(try parameter(index), text: text) else {
            throw Session.nulInText
        }
    }

    /// Binds any value.
    public func _bind(_ value: SQLValue, at index: Int) throws {
        try Session.bind(value, at: try parameter(index), of: statement)
    }
}

@available(*, unavailable)
extension PreparedStatement: Sendable {}

extension ReadContext {
    /// Prepares a statement to be run many times.
    /// - Throws: `StoreError` `.statement` or `.unknown` where SQLite cannot make sense of it.
    public func prepare(_ sql: String) throws -> PreparedStatement {
        try checkValid()
        return try PreparedStatement(sql, self)
    }
}
