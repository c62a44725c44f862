internal import MartletCore

/// Reading rows by conditions.
extension Table {
    /// All records that meet a condition.
    /// - Parameters:
    ///   - condition: What they must meet; nil for all.
    ///   - ordering: What they are ordered by; none leaves the order to SQLite.
    ///   - limit: At most so many.
    ///   - offset: Leave out so many first.
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
        let statements = try statements(context)
        let select = try select(
            statements, columns: statements.columnList, condition: condition, ordering: ordering,
            limit: limit, offset: offset)
        try context.session.forEachRow(
            select.sql, select.arguments, recorder: context.recorder, table: tableName, body)
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
    /// temporary ids go down from -1) count as newer than all others.
    public func latest(
        where condition: Condition? = nil, in context: ReadContext
    ) throws -> Element? {
        let statements = try statements(context)
        let key = statements.description.key.first ?? "rowid"
        let column = SQLFragment(column: key)
        var ordering = [Ordering(column + " DESC")]
        if statements.keyKind == .integer {
            ordering = [
                Ordering(column + " < 0 DESC"),
                Ordering(SQLFragment(sql: "abs(") + column + ") DESC"),
            ]
        }
        return try first(where: condition, orderBy: ordering, in: context)
    }

    /// The number of records that meet a condition.
    public func count(where condition: Condition? = nil, in context: ReadContext) throws -> Int {
        let statements = try statements(context)
        let select = try select(
            statements, columns: "count(*)", condition: condition, ordering: [], limit: nil,
            offset: 0)
        var count = 0
        try context.session.forEachRow(
            select.sql, select.arguments, recorder: context.recorder, table: tableName
        ) { row in
            count = try row.get(at: 0)
        }
        return count
    }

    /// - Throws: `StoreError` `.unknown` for a column the table does not have.
    func select(
        _ statements: TableStatements, columns: String, condition: Condition?,
        ordering: [Ordering], limit: Int?, offset: Int
    ) throws -> SQLFragment {
        var select = SQLFragment(sql: "SELECT \(columns) FROM \(statements.table)")
        if let condition { select = select + " WHERE " + condition.fragment }
        for (index, order) in ordering.enumerated() {
            select = select + (index == 0 ? " ORDER BY " : ", ") + order.fragment
        }
        if limit != nil || offset > 0 {
            let bound = SQLFragment(value: .integer(Int64(limit ?? -1)))
            select = select + " LIMIT " + bound
            if offset > 0 {
                select = select + " OFFSET " + SQLFragment(value: .integer(Int64(offset)))
            }
        }
        try select.check(against: statements.description)
        return select
    }
}
