internal import SQLiteKit

/// A statement that the caller prepares once and runs many times. This is the fastest way to write
/// or read many rows. It is valid only inside the closure of the context that prepared it.
///
/// ```swift
/// try await pool.write { context in
///     let insert = try context.prepare("INSERT INTO results (athlete, seconds) VALUES (?, ?)")
///     for result in results { try insert.run(result.athlete, result.seconds) }
/// }
/// ```
///
/// Values are bound and are never part of the text. Hooks do not see its writes; observers do.
public final class PreparedStatement {
    /// The text, with `?` in place of each value.
    public let sql: String
    private let context: ReadContext
    private var statement: Statement
    private var layout: RowLayout
    /// The tables whose rows this statement writes without a report from SQLite's update hook.
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
        // This releases the last values.
        if !statement.isBusy { statement.reset() }
    }

    /// Runs the statement with one value for each `?`, and discards its rows.
    /// - Throws: `StoreError` `.statement` for the wrong number of values, `.constraint` for a
    ///   violated constraint, `.misuse` outside the closure, and any other error of SQLite.
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

    /// Runs the statement with a list of values, one for each `?`, and discards its rows.
    /// - Throws: The same errors as `run` with separate values.
    public func run(_ values: [SQLValue]) throws {
        try _begin()
        for (index, value) in values.enumerated() { try _bind(value, at: index + 1) }
        try _run(bound: values.count)
    }

    /// Runs the statement with one value for each `?`, and calls `body` with each row.
    /// - Throws: The same errors as `run`, and any error of `body`, which ends the query.
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

    /// Prepares to bind values.
    /// - Throws: `StoreError` `.misuse` outside the closure; any error of SQLite.
    public func _begin() throws {
        try context.checkValid()
        // If this statement is still giving rows, a second one is prepared for the inner run.
        guard statement.isBusy else { return }
        do {
            statement = try context.session.connection.prepare(sql)
            layout = context.session.layout(of: statement)
        } catch {
            throw StoreError.of(error)
        }
    }

    /// Runs the statement with the bound values.
    /// - Throws: `StoreError` `.statement` for the wrong number of values; any error of SQLite.
    public func _run(bound: Int) throws {
        try checkCount(bound)
        do {
            while try statement.step() {}
        } catch {
            throw StoreError.of(error)
        }
        // The bindings stay until the next run replaces them, so that SQLite keeps their memory.
        statement.rewind()
        ended(statement)
    }

    /// Runs the statement with the bound values, and calls `body` with each row.
    /// - Throws: `StoreError` `.statement` for the wrong number of values; any error of SQLite or
    ///   of `body`.
    public func _forEachRow(bound: Int, _ body: (borrowing Row) throws -> Void) throws {
        try checkCount(bound)
        // `body` may run this statement again, which may replace `self.statement`.
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

    /// Binds an integer to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter.
    public func _bind(integer: Int64, at index: Int) throws {
        statement.bind(try parameter(index), integer: integer)
    }

    /// Binds a real number to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter.
    public func _bind(real: Double, at index: Int) throws {
        statement.bind(try parameter(index), real: real)
    }

    /// Binds a null to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter.
    public func _bindNull(at index: Int) throws {
        statement.bindNull(try parameter(index))
    }

    /// Binds a text to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter; `.value` for a text with
    ///   a NUL.
    public func _bind(text: String, at index: Int) throws {
        guard statement.bindUnlessNUL(try parameter(index), text: text) else {
            throw Session.nulInText
        }
    }

    /// Binds any value to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter; `.value` for a text with
    ///   a NUL.
    public func _bind(_ value: SQLValue, at index: Int) throws {
        try Session.bind(value, at: try parameter(index), of: statement)
    }
}

@available(*, unavailable)
extension PreparedStatement: Sendable {}

extension ReadContext {
    /// Prepares a statement that the caller can run many times.
    /// - Throws: `StoreError` `.statement` or `.unknown` if SQLite does not understand the text;
    ///   `.misuse` if the context does not allow the statement.
    public func prepare(_ sql: String) throws -> PreparedStatement {
        try checkValid()
        return try PreparedStatement(sql, self)
    }
}
