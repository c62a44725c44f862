/// A query as a value. The app can store it, extend it, print it, and run it in any context.
///
/// ```swift
/// let tall = players.where(players.height > 190).ordered(by: players.name.ascending)
/// let names = try tall.limited(to: 10).select(players.name).fetch(in: context)
/// ```
///
/// Names are checked against the schema before the query runs. Values are bound and are never part
/// of the text.
public struct Query<Output>: Sendable {
    var statement: SelectStatement
    let read: @Sendable (borrowing Row) throws -> Output

    init(
        _ statement: SelectStatement, read: @escaping @Sendable (borrowing Row) throws -> Output
    ) {
        self.statement = statement
        self.read = read
    }

    /// The text, with `?` in place of each value. It has `*` for the columns of a record; they are
    /// listed when the query runs.
    public var sql: String { statement.fragment.sql }

    /// The values, one for each `?`.
    public var arguments: [SQLValue] { statement.fragment.arguments }

    private func changed(_ change: (inout SelectStatement) -> Void) -> Query {
        var copy = self
        change(&copy.statement)
        return copy
    }
}

// MARK: - Building

extension Query {
    /// Adds a condition. Rows must meet it and all earlier conditions.
    public func filter(_ condition: Condition) -> Query {
        changed { $0.condition = $0.condition.map { $0 && condition } ?? condition }
    }

    /// Adds orders. They apply to rows that are equal in the earlier orders.
    public func ordered(by orderings: Ordering...) -> Query { ordered(by: orderings) }

    /// Adds orders. They apply to rows that are equal in the earlier orders.
    public func ordered(by orderings: [Ordering]) -> Query {
        changed { $0.orderings += orderings }
    }

    /// Limits the number of rows, in place of any earlier limit.
    /// - Parameters:
    ///   - limit: The highest number of rows; nil for all.
    ///   - offset: The number of rows to skip first.
    public func limited(to limit: Int?, offset: Int = 0) -> Query {
        changed {
            $0.limit = limit
            $0.offset = offset
        }
    }

    /// Removes duplicate rows.
    public func distinct() -> Query { changed { $0.isDistinct = true } }

    /// Groups the rows. All rows with the same values of these keys become one row.
    public func grouped<each Key: ColumnExpression>(by keys: repeat each Key) -> Query {
        var fragments: [SQLFragment] = []
        repeat fragments.append((each keys).fragment)
        let groups = fragments
        return changed { $0.groups += groups }
    }

    /// Adds a condition on groups, which can use aggregates.
    public func having(_ condition: Condition) -> Query {
        changed { $0.having = $0.having.map { $0 && condition } ?? condition }
    }

    /// Joins another table. Each row is combined with every row of the other table that meets the
    /// condition. Rows without such a row are left out.
    ///
    /// If both tables have a column of the same name, give the tables names with `named(_:)` and
    /// take the columns from these.
    public func join(_ table: some Table, on condition: Condition) -> Query {
        joined(QuerySource(table, join: QuerySource.Join(isLeft: false, condition: condition)))
    }

    /// Joins another table under a name of its own, as `join` does without one.
    public func join<Other: Table>(_ table: NamedTable<Other>, on condition: Condition) -> Query {
        joined(table.source(QuerySource.Join(isLeft: false, condition: condition)))
    }

    /// Joins another table. Each row is combined with every row of the other table that meets the
    /// condition. A row without such a row appears once, with null in the columns of the other
    /// table; read these with `optional`.
    public func leftJoin(_ table: some Table, on condition: Condition) -> Query {
        joined(QuerySource(table, join: QuerySource.Join(isLeft: true, condition: condition)))
    }

    /// Joins another table under a name of its own, as `leftJoin` does without one.
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
    /// Selects these columns in place of the record. One column gives values, several give tuples.
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

    /// Selects these columns in place of the record, and reads them as another record. Each column
    /// keeps its own name; `named(_:)` gives it another.
    public func select<Result: ReadableRecord, each Item: ColumnExpression>(
        as type: Result.Type, _ items: repeat each Item
    ) -> Query<Result> {
        var fragments: [SQLFragment] = []
        repeat fragments.append((each items).namedFragment)
        var selecting = statement
        selecting.selection = fragments
        return Query<Result>(selecting) { row in try Result(row: row) }
    }

    /// Selects these columns in addition to the record's columns, and reads all as another record.
    public func adding<Result: ReadableRecord, each Item: ColumnExpression>(
        _ items: repeat each Item, as type: Result.Type
    ) -> Query<Result> {
        var fragments: [SQLFragment] = []
        repeat fragments.append((each items).namedFragment)
        var selecting = statement
        selecting.additions += fragments
        return Query<Result>(selecting) { row in try Result(row: row) }
    }

    /// Reads the same rows as another record.
    public func `as`<Result: ReadableRecord>(_ type: Result.Type) -> Query<Result> {
        Query<Result>(statement) { row in try Result(row: row) }
    }
}

/// A reader of a row's columns, one after the other.
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
