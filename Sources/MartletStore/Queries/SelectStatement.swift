internal import SQLiteRecords

/// A SELECT statement as a value, without the type of its rows.
struct SelectStatement: Hashable, Sendable {
    var sources: [QuerySource]
    /// The selected expressions; nil for all columns of the first table.
    var selection: [SQLFragment]?
    /// The expressions that are selected in addition to all columns of the first table.
    var additions: [SQLFragment] = []
    var condition: Condition?
    var groups: [SQLFragment] = []
    var having: Condition?
    var orderings: [Ordering] = []
    /// The orders that apply if the query has none.
    var standardOrderings: [Ordering] = []
    var limit: Int?
    var offset = 0
    var isDistinct = false

    init(_ source: QuerySource) {
        sources = [source]
    }

    /// The text, with `*` for all columns of the first table.
    var fragment: SQLFragment { fragment(allColumns: nil) }

    /// Returns the text.
    /// - Parameter allColumns: The first table's columns; nil for `*`.
    func fragment(allColumns: [String]?) -> SQLFragment {
        let name = SQLName.quoted(sources[0].alias)
        let prefix = sources.count > 1 ? name + "." : ""
        var columns: SQLFragment
        if let selection {
            columns = selection.joined(separator: ", ")
        } else if let allColumns {
            let list = allColumns.map { prefix + SQLName.quoted($0) }.joined(separator: ", ")
            columns = SQLFragment(sql: list)
        } else {
            // SQLite needs the table's name before the star if other columns follow.
            columns = SQLFragment(sql: additions.isEmpty ? prefix + "*" : name + ".*")
        }
        for addition in additions { columns += ", " + addition }
        var select = "SELECT \(isDistinct ? "DISTINCT " : "")" + columns + " FROM "
        for source in sources { select += source.fragment }
        if let condition { select += " WHERE " + condition.fragment }
        if !groups.isEmpty { select += " GROUP BY " + groups.joined(separator: ", ") }
        if let having { select += " HAVING " + having.fragment }
        let orderings = orderings.isEmpty ? standardOrderings : orderings
        if !orderings.isEmpty {
            select += " ORDER BY " + orderings.map(\.fragment).joined(separator: ", ")
        }
        if limit != nil || offset > 0 {
            select += " LIMIT " + SQLFragment(value: .integer(Int64(limit ?? -1)))
            if offset > 0 {
                select += " OFFSET " + SQLFragment(value: .integer(Int64(offset)))
            }
        }
        return select
    }

    /// The statement that counts the rows.
    var counting: SQLFragment {
        var inner = self
        if limit == nil, offset == 0 {
            inner.orderings = []
            inner.standardOrderings = []
        }
        // The selection may be an aggregate, which gives one row for all rows.
        let isPlain =
            selection == nil && !isDistinct && groups.isEmpty && having == nil && limit == nil
            && offset == 0
        guard isPlain else {
            return "SELECT count(*) FROM (" + inner.fragment + ")"
        }
        inner.selection = [SQLFragment(sql: "count(*)")]
        inner.additions = []
        return inner.fragment
    }
}

extension SelectStatement {
    /// Returns the text and the values for SQLite, checked against the schema.
    /// - Throws: `StoreError` `.unknown` if a table or column does not exist; `MissingTable` if the
    ///   database can create the table.
    func checked(
        in context: ReadContext, counting isCounting: Bool = false
    ) throws -> (sql: String, arguments: [SQLValue]) {
        try context.checkValid()
        let scope = try QueryScope(sources, context.session)
        let fragment =
            isCounting
            ? counting
            : fragment(allColumns: selection == nil ? scope.columnsOfFirst : nil)
        return try scope.rendered(fragment)
    }

    /// Runs the statement and calls `body` with each row.
    func forEachRow(
        in context: ReadContext, counting isCounting: Bool = false,
        _ body: (borrowing Row) throws -> Void
    ) throws {
        let (sql, arguments) = try checked(in: context, counting: isCounting)
        try context.session.forEachRow(
            sql, arguments, recorder: context.recorder, table: sources[0].table, body)
    }

    /// Returns the number of rows.
    func count(in context: ReadContext) throws -> Int {
        var count = 0
        try forEachRow(in: context, counting: true) { row in count = try row.get(at: 0) }
        return count
    }
}
