/// A question to the database, as a value: it can be kept, built upon, printed, and asked in any
/// context.
///
/// ```swift
/// let tall = players.where(players.height > 190).ordered(by: players.name.ascending)
/// let names = try tall.limited(to: 10).select(players.name).fetch(in: context)
/// ```
///
/// Names are checked against the schema before anything runs; values are bound, never written into
/// the text.
public struct Query<Output>: Sendable {
    var statement: SelectStatement
    let read: @Sendable (borrowing Row) throws -> Output

    init(
        _ statement: SelectStatement, read: @escaping @Sendable (borrowing Row) throws -> Output
    ) {
        self.statement = statement
        self.read = read
    }

    /// The text, with `?` in place of each value and `*` for the columns of a record (when it is
    /// run these are listed).
    public var sql: String { statement.fragment.sql }

    /// One value for each `?`.
    public var arguments: [SQLValue] { statement.fragment.arguments }

    private func changed(_ change: (inout SelectStatement) -> Void) -> Query {
        var copy = self
        change(&copy.statement)
        return copy
    }
}

// MARK: - Building

extension Query {
    /// Only rows that meet a condition, besides the conditions there are.
    public func filter(_ condition: Condition) -> Query {
        changed { $0.condition = $0.condition.map { $0 && condition } ?? condition }
    }

    /// Rows in an order; the orders there are go before it.
    public func ordered(by orderings: Ordering...) -> Query { ordered(by: orderings) }

    /// Rows in an order; the orders there are go before it.
    public func ordered(by orderings: [Ordering]) -> Query {
        changed { $0.orderings += orderings }
    }

    /// At most so many rows, some left out first.
    /// - Parameters:
    ///   - limit: At most so many; nil for all.
    ///   - offset: How many to leave out.
    public func limited(to limit: Int?, offset: Int = 0) -> Query {
        changed {
            $0.limit = limit
            $0.offset = offset
        }
    }

    /// Each different row once.
    public func distinct() -> Query { changed { $0.isDistinct = true } }

    /// One row for all rows in which these have the same values.
    public func grouped<each Key: ColumnExpression>(by keys: repeat each Key) -> Query {
        var fragments: [SQLFragment] = []
        repeat fragments.append((each keys).fragment)
        let groups = fragments
        return changed { $0.groups += groups }
    }

    /// Only groups that meet a condition on their aggregates.
    public func having(_ condition: Condition) -> Query {
        changed { $0.having = $0.having.map { $0 && condition } ?? condition }
    }

    /// With each row, every row of another table that meets the condition; rows without one are
    /// left out.
    ///
    /// Where both tables have a column of one name, say which is meant: give the tables names with
    /// `named(_:)` and take the columns from these.
    public func join(_ table: some Table, on condition: Condition) -> Query {
        joined(QuerySource(table, join: QuerySource.Join(isLeft: false, condition: condition)))
    }

    /// The same with a table under a name of its own.
    public func join<Other: Table>(_ table: NamedTable<Other>, on condition: Condition) -> Query {
        joined(table.source(QuerySource.Join(isLeft: false, condition: condition)))
    }

    /// With each row, every row of another table that meets the condition; where there is none, the
    /// row once, with null in the other's columns (read those by `optional`).
    public func leftJoin(_ table: some Table, on condition: Condition) -> Query {
        joined(QuerySource(table, join: QuerySource.Join(isLeft: true, condition: condition)))
    }

    /// The same with a table under a name of its own.
    public func leftJoin<Other: Table>(
        _ table: NamedTable<Other>, on condition: Condition
    ) -> Query {
        joined(table.source(QuerySource.Join(isLeft: true, condition: condition)))
    }

    private func joined(_ source: QuerySource) -> Query {
        changed { $0.sources.append(source) }
    }
}

// MARK: - Selecting

extension Query {
    /// These columns in place of the record: one gives values, several give tuples.
    public func select<each Item: ColumnExpression>(
        _ items: repeat each Item
    ) -> Query<(repeat (each Item).Value)> {
        var fragments: [SQLFragment] = []
        repeat fragments.append((each items).fragment)
        var selecting = statement
        selecting.selection = fragments
        return Query<(repeat (each Item).Value)>(selecting) { row in
            var reader = ColumnReader()
            return (repeat try reader.next((each Item).Value.self, row))
        }
    }

    /// These columns in place of the record, read as another record. Each column has its own name
    /// there; `named(_:)` gives it another.
    public func select<Result: ReadableRecord, each Item: ColumnExpression>(
        as type: Result.Type, _ items: repeat each Item
    ) -> Query<Result> {
        var fragments: [SQLFragment] = []
        repeat fragments.append((each items).namedFragment)
        var selecting = statement
        selecting.selection = fragments
        return Query<Result>(selecting) { row in try Result(row: row) }
    }

    /// The record's columns and these besides, read as another record.
    public func adding<Result: ReadableRecord, each Item: ColumnExpression>(
        _ items: repeat each Item, as type: Result.Type
    ) -> Query<Result> {
        var fragments: [SQLFragment] = []
        repeat fragments.append((each items).namedFragment)
        var selecting = statement
        selecting.additions += fragments
        return Query<Result>(selecting) { row in try Result(row: row) }
    }

    /// The same rows read as another record.
    public func `as`<Result: ReadableRecord>(_ type: Result.Type) -> Query<Result> {
        Query<Result>(statement) { row in try Result(row: row) }
    }
}

/// Reads the columns of a row one after the other.
private struct ColumnReader {
    private var index = 0

    mutating func next<Value: ColumnValue>(
        _ type: Value.Type, _ row: borrowing Row
    ) throws -> Value {
        defer { index += 1 }
        return try row.get(at: index)
    }
}

extension ColumnExpression {
    fileprivate var namedFragment: SQLFragment {
        resultName.map { fragment + " AS " + SQLFragment.quotedName($0) } ?? fragment
    }
}
