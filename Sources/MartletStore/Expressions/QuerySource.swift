internal import SQLiteRecords

/// A table as it stands in the FROM clause of a query.
struct QuerySource: Hashable, Sendable {
    /// The table's name in the database.
    private(set) var table: String
    /// What makes the table on first use.
    private(set) var declaration: String?
    /// The name it has in the query.
    private(set) var alias: String
    /// How it is joined to what stands before it; nil for the first.
    var join: Join?
    /// Several tables that are read as one; nil for an ordinary table.
    var parts: SplitSource?
    /// The full-text index that stands here; nil for an ordinary table.
    var index: FullTextIndex?

    struct Join: Hashable, Sendable {
        let isLeft: Bool
        let condition: Condition
    }

    init(table: String, declaration: String?, alias: String, join: Join?) {
        self.table = table
        self.declaration = declaration
        self.alias = alias
        self.join = join
    }

    /// A full-text index in the same place.
    func replaced(by index: FullTextIndex) -> QuerySource {
        var copy = self
        copy.table = index.name
        copy.declaration = nil
        copy.alias = index.name
        copy.index = index
        return copy
    }

    /// - Throws: `StoreError` `.unknown` where there is no such table, `MissingTable` where it can
    ///   be made.
    func description(_ session: Session) throws -> TableDescription {
        if let parts { return try parts.description(alias, session) }
        if let index { return try index.description(session) }
        return try session.tableStatements(table, declaration: declaration).description
    }

    /// Several tables as one.
    init(_ parts: SplitSource, alias: String) {
        table = parts.parts[0].table
        declaration = nil
        self.alias = alias
        self.parts = parts
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
