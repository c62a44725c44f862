internal import SQLiteRecords

/// A SELECT as a value, whatever its rows are read as.
struct SelectStatement: Hashable, Sendable {
    var sources: [QuerySource]
    /// What is selected; nil for all columns of the first table.
    var selection: [SQLFragment]?
    /// Selected besides all columns of the first table.
    var additions: [SQLFragment] = []
    var condition: Condition?
    var groups: [SQLFragment] = []
    var having: Condition?
    var orderings: [Ordering] = []
    /// The order where none is asked for.
    var standardOrderings: [Ordering] = []
    var limit: Int?
    var offset = 0
    var isDistinct = false

    init(_ source: QuerySource) {
        sources = [source]
    }

    /// The text, with `*` for all columns of the first table.
    var fragment: SQLFragment { fragment(allColumns: nil) }

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
            // With anything beside it the star needs its table.
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

    /// The number of its rows, as a statement.
    var counting: SQLFragment {
        var inner = self
        if limit == nil, offset == 0 {
            inner.orderings = []
            inner.standardOrderings = []
        }
        // What is selected may be an aggregate, which makes one row of all.
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
    /// The text and values SQLite is given, checked against the schema.
    /// - Throws: `StoreError` `.unknown` for a table or column that is not there, `MissingTable`.
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

    /// Runs it and hands over each row.
    func forEachRow(
        in context: ReadContext, counting isCounting: Bool = false,
        _ body: (borrowing Row) throws -> Void
    ) throws {
        let (sql, arguments) = try checked(in: context, counting: isCounting)
        try context.session.forEachRow(
            sql, arguments, recorder: context.recorder, table: sources[0].table, body)
    }

    /// The number of rows it has.
    func count(in context: ReadContext) throws -> Int {
        var count = 0
        try forEachRow(in: context, counting: true) { row in count = try row.get(at: 0) }
        return count
    }
}
