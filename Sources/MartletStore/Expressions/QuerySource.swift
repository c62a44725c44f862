internal import SQLiteRecords

/// A table in the FROM clause of a query.
struct QuerySource: Hashable, Sendable {
    /// The table's name in the database.
    private(set) var table: String
    /// The statements that create the table on first use; nil if there are none.
    private(set) var declaration: String?
    /// The table's name in the query.
    private(set) var alias: String
    /// The join to the tables before it; nil for the first table.
    var join: Join?
    /// The parts of a table that is split over several; nil for any other table.
    var parts: SplitSource?
    /// The full-text index in this place; nil for any other table.
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

    /// Returns a copy with a full-text index in place of the table.
    func replaced(by index: FullTextIndex) -> QuerySource {
        var copy = self
        copy.table = index.name
        copy.declaration = nil
        copy.alias = index.name
        copy.index = index
        return copy
    }

    /// Returns the description of the table.
    /// - Throws: `StoreError` `.unknown` if there is no such table, `MissingTable` if the database
    ///   can create it.
    func description(_ session: Session) throws -> TableDescription {
        if let parts { return try parts.description(alias, session) }
        if let index { return try index.description(session) }
        return try session.tableStatements(table, declaration: declaration).description
    }

    /// Creates a source that reads several tables as one.
    init(_ parts: SplitSource, alias: String) {
        table = parts.parts[0].table
        declaration = nil
        self.alias = alias
        self.parts = parts
    }

    /// The table's text in the FROM clause.
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
