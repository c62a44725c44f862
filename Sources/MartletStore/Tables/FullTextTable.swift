internal import SQLiteRecords

/// A full-text index on a table, kept in step by triggers.
///
/// ```swift
/// let search = FullTextTable(on: players, columns: players.name, players.club)
/// if let pattern = FullTextPattern(allOf: typed) {
///     let found = try search.query(matching: pattern).limited(to: 20).fetch(in: context)
/// }
/// ```
///
/// It is made, and filled, where it is used and not there yet; again where its declaration has
/// changed, or a migration has made its table anew. Every write is seen, by whatever connection:
/// other programs', and what comes from a server. SQLite's VACUUM may number the rows of a table
/// anew that has no `INTEGER PRIMARY KEY`; after one, `rebuild`.
public struct FullTextTable<Base: Table>: Sendable {
    /// The table that is searched.
    public let base: Base
    let index: FullTextIndex

    /// - Parameters:
    ///   - base: The table; it needs rowids.
    ///   - columns: The columns that are searched.
    ///   - name: The index's name; nil for the table's with `_search` after it.
    ///   - tokenizer: How text is taken apart into words.
    ///   - prefixes: Lengths in characters for which prefixes get an index of their own, which
    ///     makes them fast and writing slower.
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

    /// CREATE statements, for those who make the index in a schema script or a migration. Rows that
    /// are there already are put in when it is first used.
    public var script: String { index.script }

    /// The records that match, best first.
    ///
    /// Conditions, orders and joins can be added; `rank`, `snippet` and `highlighted` can be
    /// selected, and ordered by.
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

    /// How well a row matches: the smaller the better (BM25, negative).
    public var rank: ComputedColumn<Double> {
        ComputedColumn(SQLFragment(sql: "\(SQLName.quoted(name)).\"rank\""), named: "rank")
    }

    /// The same with columns that count more or less than others.
    /// - Parameter weights: One for each column, in their order; 1 is usual.
    public func rank(weights: [Double]) -> ComputedColumn<Double> {
        let slots = weights.map { SQLFragment(value: .real($0)) }
        let arguments = [SQLFragment(sql: SQLName.quoted(name))] + slots
        return ComputedColumn("bm25(" + arguments.joined(separator: ", ") + ")", named: "rank")
    }

    /// A column's text around what matched.
    /// - Parameters:
    ///   - column: The column; nil for the one that matches best.
    ///   - before: Put before each match.
    ///   - after: Put after each match.
    ///   - ellipsis: Put where text is left out.
    ///   - words: At most so many words, 1...64.
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

    /// A column's whole text with what matched marked.
    public func highlighted(
        _ column: any AnyColumn, before: String, after: String
    ) -> ComputedColumn<String?> {
        function("highlight", column, [.text(before), .text(after)])
    }

    private func function(
        _ function: String, _ column: (any AnyColumn)?, _ values: [SQLValue]
    ) -> ComputedColumn<String?> {
        let place = column.map { column in
            index.columns.firstIndex { SQLName.folded($0) == SQLName.folded(column.name) }
        }
        // A column that is not searched is named, and so refused as unknown.
        if let column, place == .some(nil) {
            return ComputedColumn(
                SQLFragment(column: ColumnName(table: name, name: column.name)))
        }
        let number = SQLValue.integer(Int64((place ?? nil) ?? -1))
        let slots = ([number] + values).map { SQLFragment(value: $0) }
        return ComputedColumn(
            "\(function)(\(SQLName.quoted(name)), " + slots.joined(separator: ", ") + ")",
            named: function)
    }

    /// Puts all rows into the index anew.
    public func rebuild(in context: WriteContext) throws {
        try context.checkValid()
        _ = try index.description(context.session)
        try context.run(index.rebuild, [])
    }

    /// Compares the index with the rows.
    /// - Throws: `StoreError` `.file` where they differ; `rebuild` puts it right.
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
