internal import MartletModel

/// Reading rows by conditions.
extension Table {
    /// All records that meet a condition.
    /// - Parameters:
    ///   - condition: What they must meet; nil for all.
    ///   - ordering: What they are ordered by; none leaves the order to SQLite.
    ///   - limit: At most so many.
    ///   - offset: Leave out so many first.
    ///   - context: Where to read.
    public func all(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [], limit: Int? = nil,
        offset: Int = 0, in context: ReadContext
    ) throws -> [Element] {
        try all(
            as: Element.self, where: condition, orderBy: ordering, limit: limit, offset: offset,
            in: context)
    }

    /// All records that meet a condition, as another type than the table's own.
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

    /// Hands over one record after the other, so that any number takes the memory of one.
    public func forEach(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [],
        in context: ReadContext, _ body: (Element) throws -> Void
    ) throws {
        try forEachRow(where: condition, orderBy: ordering, in: context) { row in
            try body(try Element(row: row))
        }
    }

    /// Hands over one row after the other.
    public func forEachRow(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [], limit: Int? = nil,
        offset: Int = 0, in context: ReadContext, _ body: (borrowing Row) throws -> Void
    ) throws {
        try select(condition, ordering, limit: limit, offset: offset)
            .forEachRow(in: context, body)
    }

    /// The first record that meets a condition.
    public func first(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [],
        in context: ReadContext
    ) throws -> Element? {
        try all(where: condition, orderBy: ordering, limit: 1, in: context).first
    }

    /// The record with the highest key: the one made last, where keys go up.
    ///
    /// Where the key is an integer, records made on this device and not yet confirmed (their
    /// temporary ids go down from -2) count as newer than all others.
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

    /// The number of records that meet a condition.
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
