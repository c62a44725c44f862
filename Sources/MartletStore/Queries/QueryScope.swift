internal import MartletModel
internal import SQLiteRecords

/// The tables of a statement as the database describes them. The statement's columns are checked
/// against them. They also show which values are ids of records.
struct QueryScope {
    fileprivate struct Entry {
        let alias: String
        let description: TableDescription
        /// Whether it is a full-text index. Its columns repeat those of its table, and no query
        /// means them.
        var isIndex = false
    }

    private let entries: [Entry]
    /// The tables of the queries around this one, from the inner to the outer ones.
    private let outer: [[Entry]]
    private let session: Session

    /// Creates a scope for the tables of a query.
    /// - Throws: `StoreError` `.unknown` if there is no such table, `.misuse` if two tables have
    ///   the same name; `MissingTable` if the database can create a missing one.
    init(_ sources: [QuerySource], _ session: Session) throws {
        try self.init(sources, session, outer: [])
    }

    /// Creates a scope for one table under its own name.
    init(_ statements: TableStatements, _ session: Session) {
        let description = statements.description
        entries = [Entry(alias: description.name, description: description)]
        outer = []
        self.session = session
    }

    private init(_ sources: [QuerySource], _ session: Session, outer: [[Entry]]) throws {
        self.session = session
        self.outer = outer
        var entries: [Entry] = []
        for source in sources {
            let alias = source.alias
            guard !entries.contains(where: { SQLName.folded($0.alias) == SQLName.folded(alias) })
            else {
                throw StoreError(
                    .misuse,
                    "Two tables of the query are called “\(alias)”; give one another name with"
                        + " named(_:).")
            }
            let description = try source.description(session)
            entries.append(
                Entry(alias: alias, description: description, isIndex: source.index != nil))
        }
        self.entries = entries
    }

    /// The columns of the first table, in order.
    var columnsOfFirst: [String] { entries[0].description.columns.map(\.name) }

    /// Checks a statement's columns, and returns the text to run and the values to bind. Temporary
    /// ids are replaced by the permanent ids that the device knows.
    /// - Throws: `StoreError` `.unknown` for a column that does not exist, `.misuse` for a column
    ///   that two tables have.
    func rendered(_ fragment: SQLFragment) throws -> (sql: String, arguments: [SQLValue]) {
        var sql = ""
        var arguments: [SQLValue] = []
        try render(fragment, &sql, &arguments)
        return (sql, arguments)
    }

    private func render(
        _ fragment: SQLFragment, _ sql: inout String, _ arguments: inout [SQLValue]
    ) throws {
        for part in fragment.parts {
            switch part {
            case .text(let text): sql += text
            case .raw(let text, let values):
                sql += text
                arguments += values
            case .column(let column):
                let entry = try find(column)
                let isAlone = entries.count == 1 && outer.isEmpty
                let table = isAlone ? column.table : entry.alias
                sql += ColumnName(table: table, name: column.name).sql
            case .binding(let binding):
                sql += "?"
                arguments.append(try value(of: binding))
            case .query(let query):
                try QueryScope(query.sources, session, outer: [entries] + outer)
                    .render(query.fragment, &sql, &arguments)
            }
        }
    }

    private func value(of binding: SQLFragment.Binding) throws -> SQLValue {
        guard let store = session.store, let column = binding.column, binding.mayHoldTemporaryID,
            let type = typeOfID(in: column, store)
        else { return binding.value }
        return try binding.mapped { value in
            guard case .integer(let number) = value, number < 0 else { return value }
            return SQLValue(try store.resolve(.integer(number), type: type))
        }.value
    }

    /// Returns the type whose ids a column holds; nil if it holds none.
    private func typeOfID(in column: ColumnName, _ store: any SyncedTables) -> Int? {
        guard let entry = try? find(column), let name = entry.description.column(column.name)?.name,
            let type = store.schema.index(of: entry.description.name)
        else { return nil }
        if store.schema.types[type].key == name { return type }
        return store.schema.types[type].reference(of: name).flatMap {
            store.schema.index(of: $0.target)
        }
    }

    private func find(_ column: ColumnName) throws -> Entry {
        let all = ([entries] + outer).joined().filter { !$0.isIndex }
        let named = all.filter { entry in
            column.table.map { SQLName.folded($0) == SQLName.folded(entry.alias) } ?? true
        }
        if let table = column.table, named.isEmpty { throw unknownTable(table, column.name) }
        let found = named.filter { $0.has(column.name) }
        // A table of an inner query hides an outer table of the same name, as in SQL.
        if let first = found.first, found.count == 1 || column.table != nil { return first }
        // If a query and the query around it have the same table, unnamed, the inner one is meant.
        let inner = entries.filter { !$0.isIndex && $0.has(column.name) }
        if let first = inner.first, inner.count == 1,
            found.allSatisfy({ $0.description.name == first.description.name })
        {
            return first
        }
        guard found.isEmpty else {
            throw StoreError(
                .misuse,
                "The column “\(column.name)” is in \(words(found.map(\.alias))); say which is meant"
                    + " by naming the tables with named(_:).")
        }
        throw unknown(column.name, named)
    }

    private func unknownTable(_ table: String, _ column: String) -> StoreError {
        StoreError(
            .unknown,
            "The column “\(column)” is asked of “\(table)”, which is no table of the query; its"
                + " tables are \(words(([entries] + outer).joined().map(\.alias))).")
    }

    private func unknown(_ column: String, _ entries: [Entry]) -> StoreError {
        let there = entries.map { entry in
            "“\(entry.alias)” has no column “\(column)”; it has"
                + " \(entry.description.columns.map(\.name).joined(separator: ", "))."
        }
        var error = StoreError(
            .unknown, there.map { "The table " + $0 }.joined(separator: " "))
        error.table = entries.first?.description.name
        return error
    }

    private func words(_ names: [String]) -> String {
        names.map { "“\($0)”" }.joined(separator: " and ")
    }
}

extension QueryScope.Entry {
    fileprivate func has(_ column: String) -> Bool {
        description.column(column) != nil
            || (SQLName.folded(column) == "rowid" && description.hasRowID)
    }
}

extension SQLFragment.Binding {
    /// Whether the value, or a value of the list, is a negative integer.
    fileprivate var mayHoldTemporaryID: Bool {
        func isNegative(_ value: SQLValue) -> Bool {
            if case .integer(let number) = value { number < 0 } else { false }
        }
        return switch content {
        case .value(let value): isNegative(value)
        case .list(let values): values.contains(where: isNegative)
        }
    }

    fileprivate func mapped(_ change: (SQLValue) throws -> SQLValue) rethrows -> Self {
        var copy = self
        switch content {
        case .value(let value): copy.content = .value(try change(value))
        case .list(let values): copy.content = .list(try values.map(change))
        }
        return copy
    }
}
