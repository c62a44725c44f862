internal import MartletModel

/// Reads rows by conditions.
extension Table {
    /// Returns all records that meet a condition.
    /// - Parameters:
    ///   - condition: The condition; nil for all records.
    ///   - ordering: The orders of the records. If there are none, SQLite chooses the order.
    ///   - limit: The highest number of records; nil for all.
    ///   - offset: The number of records to skip first.
    ///   - context: The context to read in.
    /// - Throws: `StoreError` `.unknown` if the table or a column does not exist, `.value` if a row
    ///   does not fit the element.
    public func all(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [], limit: Int? = nil,
        offset: Int = 0, in context: ReadContext
    ) throws -> [Element] {
        try all(
            as: Element.self, where: condition, orderBy: ordering, limit: limit, offset: offset,
            in: context)
    }

    /// Returns all records that meet a condition, as another type than the table's own.
    /// - Throws: The same errors as `all` without a type.
    public func all<Result: ReadableRecord>(
        as type: Result.Type, where condition: Condition? = nil,
        orderBy ordering: [Ordering] = [], limit: Int? = nil, offset: Int = 0,
        in context: ReadContext
    ) throws -> [Result] {
        var found: [Result] = []
        try forEachRow(
            where: condition, orderBy: ordering, limit: limit, offset: offset, in: context
        ) { row in
            found.append(try Result(row: row))
        }
        return found
    }

    /// Calls `body` with each record that meets a condition. It holds one record in memory at a
    /// time.
    /// - Throws: The same errors as `all`, and any error of `body`, which ends the query.
    public func forEach(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [],
        in context: ReadContext, _ body: (Element) throws -> Void
    ) throws {
        try forEachRow(where: condition, orderBy: ordering, in: context) { row in
            try body(try Element(row: row))
        }
    }

    /// Calls `body` with each row that meets a condition. It holds one row in memory at a time.
    /// - Throws: The same errors as `all`, and any error of `body`, which ends the query.
    public func forEachRow(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [], limit: Int? = nil,
        offset: Int = 0, in context: ReadContext, _ body: (borrowing Row) throws -> Void
    ) throws {
        try select(condition, ordering, limit: limit, offset: offset)
            .forEachRow(in: context, body)
    }

    /// Returns the first record that meets a condition; nil if there is none.
    /// - Throws: The same errors as `all`.
    public func first(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [],
        in context: ReadContext
    ) throws -> Element? {
        try all(where: condition, orderBy: ordering, limit: 1, in: context).first
    }

    /// Returns the record with the highest key; nil if there is none. If keys increase, it is the
    /// newest record. If the key has several columns, only the first one counts.
    ///
    /// For a synchronised type with integer keys, records of this device that the server has not
    /// yet confirmed count as newer than all others. Their temporary ids decrease from -2.
    /// - Throws: The same errors as `all`.
    public func latest(
        where condition: Condition? = nil, in context: ReadContext
    ) throws -> Element? {
        let statements = try statements(context)
        let key = statements.description.key.first ?? "rowid"
        let column = SQLFragment(column: ColumnName(table: nil, name: key))
        var ordering = [Ordering(column + " DESC")]
        if statements.keyKind == .integer {
            ordering = [
                Ordering(column + " < 0 DESC"),
                Ordering("abs(" + column + ") DESC"),
            ]
        }
        return try first(where: condition, orderBy: ordering, in: context)
    }

    /// Returns the number of records that meet a condition.
    /// - Throws: `StoreError` `.unknown` if the table or a column does not exist.
    public func count(where condition: Condition? = nil, in context: ReadContext) throws -> Int {
        try select(condition, [], limit: nil, offset: 0).count(in: context)
    }

    private func select(
        _ condition: Condition?, _ ordering: [Ordering], limit: Int?, offset: Int
    ) -> SelectStatement {
        var select = SelectStatement(QuerySource(self))
        select.condition = condition
        select.orderings = ordering
        select.limit = limit
        select.offset = offset
        return select
    }
}
