internal import SQLiteRecords

/// A full-text index on a table. Triggers keep it up to date.
///
/// ```swift
/// let search = FullTextTable(on: players, columns: players.name, players.club)
/// if let pattern = FullTextPattern(allOf: typed) {
///     let found = try search.query(matching: pattern).limited(to: 20).fetch(in: context)
/// }
/// ```
///
/// The database creates and fills the index on first use. It does so again if the declaration has
/// changed, or if a migration has recreated the table. The triggers see every write by any
/// connection, including external writes and changes from a server. If the table has no
/// `INTEGER PRIMARY KEY`, SQLite's VACUUM may renumber its rows; call `rebuild` after it.
public struct FullTextTable<Base: Table>: Sendable {
    /// The table that the index searches.
    public let base: Base
    let index: FullTextIndex

    /// Creates the declaration of an index.
    /// - Parameters:
    ///   - base: The table. It must have rowids.
    ///   - columns: The columns to search.
    ///   - name: The index's name; nil for the table's name followed by `_search`.
    ///   - tokenizer: The way in which text is split into words.
    ///   - prefixes: Lengths in characters. Prefixes of these lengths get their own index, which
    ///     makes searching them faster, and writing slower.
    public init<each Item: ColumnValue>(
        on base: Base, columns: repeat Column<each Item>, named name: String? = nil,
        tokenizer: FullTextTokenizer = .unicode, prefixes: [Int] = []
    ) {
        self.base = base
        var names: [String] = []
        repeat names.append((each columns).name)
        var options = ["tokenize='\(tokenizer.specification)'"]
        if !prefixes.isEmpty {
            options.append("prefix='\(prefixes.map(String.init).joined(separator: " "))'")
        }
        index = FullTextIndex(
            name: name ?? base.tableName + "_search", content: base.tableName,
            contentDeclaration: base.declaration, columns: names, options: options)
    }

    /// The index's name.
    public var name: String { index.name }

    /// The CREATE statements of the index, for a schema script or a migration that creates it. The
    /// rows that the table already has are added when the index is first used.
    public var script: String { index.script }

    /// Returns a query for the records that match, the best first.
    ///
    /// The caller can add conditions, orders and joins. It can select `rank`, `snippet` and
    /// `highlighted`, and order by them.
    public func query(matching pattern: FullTextPattern) -> Query<Base.Element> {
        let table = SQLName.quoted(name)
        let link =
            SQLFragment(sql: "\(table).rowid = ")
            + SQLFragment(column: ColumnName(table: base.tableName, name: "rowid"))
        var source = QuerySource(
            base, join: QuerySource.Join(isLeft: false, condition: Condition(link)))
        source = source.replaced(by: index)
        var select = SelectStatement(QuerySource(base))
        select.sources.append(source)
        select.condition = Condition(
            "(\(table) MATCH " + SQLFragment(value: .text(pattern.query)) + ")")
        select.standardOrderings = [rank.ascending]
        return Query(select) { row in try Base.Element(row: row) }
    }

    /// The rank of a row (BM25): a negative number. A lower number is a better match.
    public var rank: ComputedColumn<Double> {
        ComputedColumn(SQLFragment(sql: "\(SQLName.quoted(name)).\"rank\""), named: "rank")
    }

    /// Returns the rank with a weight for each column.
    /// - Parameter weights: One weight for each column, in the order of the columns; the usual
    ///   weight is 1.
    public func rank(weights: [Double]) -> ComputedColumn<Double> {
        let slots = weights.map { SQLFragment(value: .real($0)) }
        let arguments = [SQLFragment(sql: SQLName.quoted(name))] + slots
        return ComputedColumn("bm25(" + arguments.joined(separator: ", ") + ")", named: "rank")
    }

    /// Returns a part of a column's text around the matches.
    /// - Parameters:
    ///   - column: The column; nil for the one that matches best.
    ///   - before: The text before each match.
    ///   - after: The text after each match.
    ///   - ellipsis: The text in place of omitted text.
    ///   - words: The highest number of words, 1...64.
    public func snippet(
        of column: (any AnyColumn)? = nil, before: String = "", after: String = "",
        ellipsis: String = "…", words: Int = 16
    ) -> ComputedColumn<String?> {
        function(
            "snippet", column,
            [
                .text(before), .text(after), .text(ellipsis),
                .integer(Int64(Swift.min(Swift.max(words, 1), 64))),
            ])
    }

    /// Returns a column's whole text, with each match between `before` and `after`.
    public func highlighted(
        _ column: any AnyColumn, before: String, after: String
    ) -> ComputedColumn<String?> {
        function("highlight", column, [.text(before), .text(after)])
    }

    private func function(
        _ function: String, _ column: (any AnyColumn)?, _ values: [SQLValue]
    ) -> ComputedColumn<String?> {
        let position = column.map { column in
            index.columns.firstIndex { SQLName.folded($0) == SQLName.folded(column.name) }
        }
        // A column that the index does not have is rendered by its name, so that the check of names
        // refuses it.
        if let column, position == .some(nil) {
            return ComputedColumn(
                SQLFragment(column: ColumnName(table: name, name: column.name)))
        }
        let number = SQLValue.integer(Int64((position ?? nil) ?? -1))
        let slots = ([number] + values).map { SQLFragment(value: $0) }
        return ComputedColumn(
            "\(function)(\(SQLName.quoted(name)), " + slots.joined(separator: ", ") + ")",
            named: function)
    }

    /// Rebuilds the index from all rows.
    /// - Throws: `StoreError` `.unknown` if the table or a column does not exist, `.schema` if the
    ///   table has no rowids.
    public func rebuild(in context: WriteContext) throws {
        try context.checkValid()
        _ = try index.description(context.session)
        try context.run(index.rebuild, [])
    }

    /// Compares the index with the rows.
    /// - Throws: `StoreError` `.file` if they differ; `rebuild` repairs the index. `.unknown` and
    ///   `.schema` as `rebuild`.
    public func check(in context: WriteContext) throws {
        try context.checkValid()
        _ = try index.description(context.session)
        do {
            try context.run(index.check, [])
        } catch {
            throw StoreError.of(error, table: name)
        }
    }
}
