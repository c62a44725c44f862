internal import SQLiteRecords

/// A table as it stands in the FROM clause of a query.
struct QuerySource: Hashable, Sendable {
    /// The table's name in the database.
    let table: String
    /// What makes the table on first use.
    let declaration: String?
    /// The name it has in the query.
    let alias: String
    /// How it is joined to what stands before it; nil for the first.
    var join: Join?
    /// Several tables that are read as one; nil for an ordinary table.
    var parts: SplitSource?

    struct Join: Hashable, Sendable {
        let isLeft: Bool
        let condition: Condition
    }

    init(_ table: some Table, alias: String? = nil, join: Join? = nil) {
        self.table = table.tableName
        declaration = table.declaration
        self.alias = alias ?? table.tableName
        self.join = join
    }

    /// The text of the FROM clause for it.
    var fragment: SQLFragment {
        let name = SQLName.quoted(alias)
        var text: SQLFragment
        if let parts {
            text = "(" + parts.fragment + ") AS \(name)"
        } else {
            let own = SQLName.quoted(table)
            text = SQLFragment(sql: own == name ? own : "\(own) AS \(name)")
        }
        guard let join else { return text }
        text = (join.isLeft ? " LEFT JOIN " : " JOIN ") + text
        return text + " ON " + join.condition.fragment
    }
}
