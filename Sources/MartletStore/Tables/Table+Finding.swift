internal import MartletModel
internal import SQLiteKit

/// Finding rows by their key.
extension Table {
    /// The record with a key; nil where there is none. A temporary id finds its record for ever.
    /// - Parameters:
    ///   - key: The value of the key column; of the rowid where there is no declared key.
    ///   - context: Where to read.
    /// - Throws: `StoreError`.
    public func find(_ key: some ColumnValue, in context: ReadContext) throws -> Element? {
        try find(key, as: Element.self, in: context)
    }

    /// The record with a key, as another type than the table's own.
    public func find<Result: ReadableRecord>(
        _ key: some ColumnValue, as type: Result.Type, in context: ReadContext
    ) throws -> Result? {
        let statements = try statements(context)
        let value = try context.resolve(key.sqlValue, statements)
        return try fetchOne(statements, value, context) { row in try Result(row: row) }
    }

    /// Fills a record from the row with a key: for objects that exist already, such as views.
    /// - Returns: Whether there is such a row.
    public func fill<Target: Record>(
        _ record: inout Target, from key: some ColumnValue, in context: ReadContext
    ) throws -> Bool {
        let statements = try statements(context)
        let value = try context.resolve(key.sqlValue, statements)
        guard
            let values = try fetchOne(statements, value, context, { row in try row.values })
        else { return false }
        try record.fill(from: values)
        return true
    }

    /// The records with these keys, in the order of the keys; keys without a record are left out.
    /// - Complexity: One look-up a key.
    public func find<Key: ColumnValue>(
        keys: some Sequence<Key>, in context: ReadContext
    ) throws -> [Element] {
        let statements = try statements(context)
        return try keys.compactMap { key in
            let value = try context.resolve(key.sqlValue, statements)
            return try fetchOne(statements, value, context) { row in try Element(row: row) }
        }
    }

    /// Whether there is a record with a key.
    public func exists(_ key: some ColumnValue, in context: ReadContext) throws -> Bool {
        let statements = try statements(context)
        let value = try context.resolve(key.sqlValue, statements)
        return try fetchOne(statements, value, context) { _ in true } ?? false
    }

    private func fetchOne<Result>(
        _ statements: TableStatements, _ key: SQLValue, _ context: ReadContext,
        _ body: (borrowing Row) throws -> Result
    ) throws -> Result? {
        guard !statements.description.isView else {
            throw StoreError(
                .misuse, "“\(tableName)” is a view, which has no key; find by a condition.")
        }
        guard statements.description.key.count <= 1 else {
            throw StoreError(
                .misuse,
                "The key of “\(tableName)” has \(statements.description.key.count) columns; find"
                    + " its rows by a condition.")
        }
        let session = context.session
        do {
            let (statement, layout) = try statements.finder(session)
            defer { statement.rewind() }
            try session.bind(key, at: 1, of: statement)
            try context.note(key, statements)
            guard try statement.step() else { return nil }
            return try body(Row(statement, layout: layout))
        } catch {
            throw StoreError.of(error, table: tableName)
        }
    }
}

extension ReadContext {
    /// A key's value, with a temporary id replaced by the permanent one where it is known.
    func resolve(_ key: SQLValue, _ statements: TableStatements) throws -> SQLValue {
        guard case .integer(let number) = key, number < 0, let type = statements.type,
            let store = session.store
        else { return key }
        return SQLValue(try store.resolve(.integer(number), type: type))
    }

    /// Values in which temporary ids of other records are replaced by permanent ones where these
    /// are known: what a record in memory points at may have got its id meanwhile.
    func resolvingReferences(
        _ values: RecordValues, _ statements: TableStatements
    ) throws -> RecordValues {
        guard !statements.references.isEmpty, let store = session.store else { return values }
        var resolved = values
        for (name, type) in statements.references {
            guard case .integer(let number)? = values[name], number < 0 else { continue }
            resolved[name] = SQLValue(try store.resolve(.integer(number), type: type))
        }
        return resolved
    }

    /// Notes that one row was read, for an observation.
    func note(_ key: SQLValue, _ statements: TableStatements) throws {
        guard let recorder else { return }
        let description = statements.description
        guard description.hasRowID else {
            return recorder.note(description.name, isVirtual: description.isVirtual)
        }
        if case .integer(let number) = key,
            description.key.isEmpty || description.rowIDColumn != nil
        {
            return recorder.note(row: number, of: description.name)
        }
        // The row of a text key; where there is none yet, any change may bring it.
        var isThere = false
        try session.forEachRow(
            "SELECT rowid FROM \(statements.table) WHERE \(statements.keyCondition)", [key]
        ) { row in
            recorder.note(row: try row.get(at: 0), of: description.name)
            isThere = true
        }
        if !isThere { recorder.note(description.name, isVirtual: false) }
    }
}
