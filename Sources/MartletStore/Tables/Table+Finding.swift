internal import MartletModel
internal import SQLiteKit

/// Finding rows by their key.
extension Table {
    /// Returns the record with a key; nil if there is none. A temporary id finds its record for
    /// ever.
    /// - Parameters:
    ///   - key: The value of the key column, or of the rowid if the table declares no key.
    ///   - context: The context to read in.
    /// - Throws: `StoreError` `.unknown` if there is no such table, `.misuse` for a view or a key
    ///   of several columns, `.value` if the row does not fit the element.
    public func find(_ key: some ColumnValue, in context: ReadContext) throws -> Element? {
        try find(key, as: Element.self, in: context)
    }

    /// Returns the record with a key, as another type than the table's own; nil if there is none.
    /// - Throws: The same errors as `find` without a type.
    public func find<Result: ReadableRecord>(
        _ key: some ColumnValue, as type: Result.Type, in context: ReadContext
    ) throws -> Result? {
        let statements = try statements(context)
        let value = try context.resolve(key.sqlValue, statements)
        return try fetchOne(statements, value, context) { row in try Result(row: row) }
    }

    /// Fills a record from the row with a key. It suits objects that already exist, such as views.
    /// - Returns: Whether there is such a row.
    /// - Throws: The same errors as `find`, and any error of the record's `fill`.
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

    /// Returns the records with these keys, in the order of the keys. Keys without a record are
    /// left out.
    /// - Throws: The same errors as `find` with one key.
    /// - Complexity: One look-up for each key.
    public func find<Key: ColumnValue>(
        keys: some Sequence<Key>, in context: ReadContext
    ) throws -> [Element] {
        let statements = try statements(context)
        return try keys.compactMap { key in
            let value = try context.resolve(key.sqlValue, statements)
            return try fetchOne(statements, value, context) { row in try Element(row: row) }
        }
    }

    /// Returns whether there is a record with a key.
    /// - Throws: The same errors as `find`.
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
    /// Returns the key's value. A temporary id is replaced by the permanent id, if the device knows
    /// it.
    func resolve(_ key: SQLValue, _ statements: TableStatements) throws -> SQLValue {
        guard case .integer(let number) = key, number < 0, let type = statements.type,
            let store = session.store
        else { return key }
        return SQLValue(try store.resolve(.integer(number), type: type))
    }

    /// Returns the values. Temporary ids of other records are replaced by the permanent ids that
    /// the device knows, because a record in memory may still refer to a temporary id.
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

    /// Records that one row was read, for an observation.
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
        // The row of a text key. If there is none yet, any change of the table may insert it.
        var isThere = false
        try session.forEachRow(
            "SELECT rowid FROM \(statements.table) WHERE \(statements.keyCondition())", [key]
        ) { row in
            recorder.note(row: try row.get(at: 0), of: description.name)
            isThere = true
        }
        if !isThere { recorder.note(description.name, isVirtual: false) }
    }
}
