public import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// Writes rows.
extension Table {
    /// Inserts a record.
    ///
    /// If the record leaves its key empty, one is made. SQLite makes an integer, or a column's
    /// DEFAULT gives the key. In a synchronised table, an integer key is a temporary id. A text key
    /// is a random UUID.
    /// - Returns: The record's key. If the key is neither a number nor a text, or has several
    ///   columns, it is the rowid; 0 if the table has no rowids. It is also 0 if SQLite skips the
    ///   record because of a constraint's ON CONFLICT IGNORE or a trigger.
    /// - Throws: `StoreError` `.unknown` for a table or column that does not exist, `.value` for a
    ///   value that does not fit, `.constraint` for a violated constraint; any error of a hook.
    @discardableResult
    public func insert(_ record: some Record, in context: WriteContext) throws -> RecordID {
        try insert(record, try statements(context), context)
    }

    /// Inserts records, in order.
    /// - Returns: The keys of the records, in the same order.
    /// - Throws: The errors of inserting one record.
    @discardableResult
    public func insert<Item: Record>(
        contentsOf records: some Sequence<Item>, in context: WriteContext
    ) throws -> [RecordID] {
        let statements = try statements(context)
        return try records.map { record in try insert(record, statements, context) }
    }

    /// Changes the record that has the key of `record`, to the values in `record`.
    /// - Returns: Whether the record was written. It is false if there is no such record, or if
    ///   SQLite skips it because of a constraint's ON CONFLICT IGNORE or a trigger.
    /// - Throws: `StoreError` `.unknown` for a table or column that does not exist, `.value` for a
    ///   value that does not fit or a missing key, `.constraint` for a violated constraint,
    ///   `.misuse` if the table has no key; any error of a hook.
    @discardableResult
    public func update(_ record: some Record, in context: WriteContext) throws -> Bool {
        let statements = try statements(context)
        let values = try values(of: record, statements)
        return try update(values, statements, context)
    }

    /// Changes the records that have the keys of `records`.
    /// - Returns: The number of records that were written.
    /// - Throws: The errors of updating one record.
    @discardableResult
    public func update<Item: Record>(
        contentsOf records: some Sequence<Item>, in context: WriteContext
    ) throws -> Int {
        let statements = try statements(context)
        var count = 0
        for record in records {
            let values = try values(of: record, statements)
            if try update(values, statements, context) { count += 1 }
        }
        return count
    }

    /// Changes the record that has the key of `record`, or inserts it if there is none.
    /// - Returns: The record's key; 0 if SQLite skips the record.
    /// - Throws: The errors of `insert` and `update`.
    @discardableResult
    public func upsert(_ record: some Record, in context: WriteContext) throws -> RecordID {
        let statements = try statements(context)
        return try upsert(try values(of: record, statements), statements, context)
    }

    /// Changes or inserts records, in order.
    /// - Returns: The keys of the records, in the same order; 0 for a record that SQLite skips.
    /// - Throws: The errors of `insert` and `update`.
    @discardableResult
    public func upsert<Item: Record>(
        contentsOf records: some Sequence<Item>, in context: WriteContext
    ) throws -> [RecordID] {
        let statements = try statements(context)
        return try records.map { record in
            try upsert(try values(of: record, statements), statements, context)
        }
    }

    /// Deletes the record with a key, and carries out the ON DELETE actions of the references to
    /// it.
    /// - Returns: Whether a record was deleted.
    /// - Throws: `StoreError` `.misuse` if the key has several columns, `.constraint` if a
    ///   reference forbids the deletion; any error of a hook.
    @discardableResult
    public func delete(_ key: some ColumnValue, in context: WriteContext) throws -> Bool {
        let statements = try statements(context)
        return try delete([try context.resolve(key.sqlValue, statements)], statements, context)
    }

    /// Deletes the records with these keys.
    /// - Returns: The number of records that were deleted.
    /// - Throws: The errors of deleting one record.
    @discardableResult
    public func delete<Key: ColumnValue>(
        keys: some Sequence<Key>, in context: WriteContext
    ) throws -> Int {
        let statements = try statements(context)
        var count = 0
        for key in keys {
            let value = try context.resolve(key.sqlValue, statements)
            if try delete([value], statements, context) { count += 1 }
        }
        return count
    }

    /// Deletes the record that has the key of `record`.
    /// - Returns: Whether a record was deleted.
    /// - Throws: `StoreError` `.value` if `record` has no key, `.misuse` if the table has no key,
    ///   `.constraint` if a reference forbids the deletion; any error of a hook.
    @discardableResult
    public func delete(record: some Record, in context: WriteContext) throws -> Bool {
        let statements = try statements(context)
        let values = try values(of: record, statements)
        return try delete(try key(of: values, statements, context), statements, context)
    }
}

// MARK: - One row

extension Table {
    /// Returns the record's values for this table.
    /// - Parameter allowing: Returns whether a value is a placeholder, which may have any kind.
    func values(
        of record: some Record, _ statements: TableStatements,
        allowing: (SQLValue) -> Bool = { _ in false }
    ) throws -> RecordValues {
        try checkNames(of: record, statements)
        let values = try record.dictionaryRepresentation(
            columns: statements.columns, table: tableName)
        try statements.check(values, allowing: allowing)
        if values.isEmpty {
            // An empty record means that every column gets its default. A record of another table
            // does not.
            let others = try record.dictionaryRepresentation(columns: .all, table: tableName)
            guard others.isEmpty else { throw statements.hasNone(of: others) }
        }
        return values
    }

    /// Refuses a record of the table's own element that has a name without a column.
    private func checkNames<Item: Record>(
        of record: Item, _ statements: TableStatements
    ) throws {
        guard Item.self == Element.self else { return }
        let type = ObjectIdentifier(Item.self)
        guard !statements.checkedTypes.contains(type) else { return }
        try OwnNames(
            table: tableName, columns: statements.description.columns.map(\.name),
            elsewhere: storedElsewhere
        ).check(record)
        // An `Encodable` type has the same names in each record.
        if record is any Encodable { statements.checkedTypes.insert(type) }
    }

    private func insert(
        _ record: some Record, _ statements: TableStatements, _ context: WriteContext
    ) throws -> RecordID {
        try checkNames(of: record, statements)
        if let key = try statements.insertDirectly(record, tableName: tableName, context) {
            return key
        }
        return try insert(try values(of: record, statements), statements, context)
    }

    func insert(
        _ given: RecordValues, _ statements: TableStatements, _ context: WriteContext
    ) throws -> RecordID {
        var values = try context.resolvingReferences(given, statements)
        let made = try context.makeKey(for: &values, statements)
        let write = RowWrite(
            operation: .insert, table: tableName, key: made ?? statements.key(of: values),
            keyValues: statements.keyValues(values), values: values)
        let outcome = try context.hooked(write) {
            let sql = statements.insertSQL(values.names)
            if let name = statements.madeByDefault, values[name] == nil {
                return try context.insertReturning(name, sql, values.values)
            }
            try context.run(sql, values.values)
            // If a constraint made SQLite skip the record, its last rowid is the one of another
            // record.
            guard context.session.connection.changes > 0 else { return .notWritten }
            return .written(
                write.key ?? .integer(statements.madeRowID(context.session.connection)))
        }
        guard case .written(let key) = outcome else { return .integer(0) }
        return key ?? .integer(0)
    }

    private func update(
        _ given: RecordValues, _ statements: TableStatements, _ context: WriteContext
    ) throws -> Bool {
        let key = try key(of: given, statements, context)
        var values = given
        for name in statements.description.key { values[name] = nil }
        return try update(key, values, statements, context)
    }

    /// Changes the row with a key.
    func update(
        _ key: [SQLValue], _ given: RecordValues, _ statements: TableStatements,
        _ context: WriteContext
    ) throws -> Bool {
        guard !given.isEmpty else { return try exists(key, statements, context) }
        let values = try context.resolvingReferences(given, statements)
        let write = RowWrite(
            operation: .update, table: tableName, key: key.count == 1 ? RecordID(key[0]) : nil,
            keyValues: statements.keyValues(key), values: values)
        return try context.hooked(write) {
            do {
                try context.run(statements.updateSQL(values.names), values.values + key)
            } catch {
                try updateLess(values, key, statements, context, after: error)
            }
            return RowOutcome(isWritten: context.session.connection.changes > 0)
        }.isWritten
    }

    /// Updates only the values that differ, after SQLite refused a reference. SQLite checks a
    /// reference even if its value stays the same, and its parent may be a record that the device
    /// has not yet received.
    private func updateLess(
        _ values: RecordValues, _ key: [SQLValue], _ statements: TableStatements,
        _ context: WriteContext, after error: any Error
    ) throws {
        guard let refusal = error as? SQLiteError, refusal.isForeignKeyViolation,
            let present = try context.rows(
                "SELECT \(SQLName.list(values.names)) FROM \(statements.table)"
                    + " WHERE \(statements.keyCondition())", key
            ).first
        else { throw error }
        var fewer = values
        for (name, value) in zip(present.names, present.values) where values[name] == value {
            fewer[name] = nil
        }
        guard !fewer.isEmpty, fewer.count < values.count else { throw error }
        try context.run(statements.updateSQL(fewer.names), fewer.values + key)
    }

    private func upsert(
        _ values: RecordValues, _ statements: TableStatements, _ context: WriteContext
    ) throws -> RecordID {
        let names = statements.description.key
        let hasKey = !names.isEmpty && names.allSatisfy { !(values[$0]?.isNull ?? true) }
        guard hasKey else { return try insert(values, statements, context) }
        let key = try key(of: values, statements, context)
        // Hooks must see the write that takes place, and not an attempted update.
        if !context.session.hooks.isEmpty, try !exists(key, statements, context) {
            return try insert(values, statements, context)
        }
        if try update(values, statements, context) { return try context.id(of: key, statements) }
        // A record that SQLite skipped exists nevertheless.
        guard try !exists(key, statements, context) else { return .integer(0) }
        return try insert(values, statements, context)
    }

    func delete(
        _ key: [SQLValue], _ statements: TableStatements, _ context: WriteContext
    ) throws -> Bool {
        guard key.count == max(1, statements.description.key.count) else {
            throw StoreError(
                .misuse,
                "The key of “\(tableName)” has \(statements.description.key.count) columns; delete"
                    + " its rows by a condition, or by the record.")
        }
        let write = RowWrite(
            operation: .delete, table: tableName, key: key.count == 1 ? RecordID(key[0]) : nil,
            keyValues: statements.keyValues(key), values: nil)
        return try context.hooked(write) {
            try context.run(statements.deleteSQL, key)
            return RowOutcome(isWritten: context.session.connection.changes > 0)
        }.isWritten
    }

    private func exists(
        _ key: [SQLValue], _ statements: TableStatements, _ context: WriteContext
    ) throws -> Bool {
        var isThere = false
        try context.session.forEachRow(statements.findSQL, key) { _ in isThere = true }
        return isThere
    }

    /// Returns the values of the key's columns. Temporary ids are replaced by permanent ones.
    private func key(
        of values: RecordValues, _ statements: TableStatements, _ context: WriteContext
    ) throws -> [SQLValue] {
        let names = statements.description.key
        guard !names.isEmpty else {
            throw StoreError(
                .misuse, "The table “\(tableName)” has no key; write its rows by a condition.")
        }
        return try names.map { name in
            guard let value = values[name], !value.isNull else {
                throw StoreError(
                    .value,
                    "The record carries no value for the key column “\(name)” of “\(tableName)”;"
                        + " insert it first.")
            }
            return try context.resolve(value, statements)
        }
    }
}

extension TableStatements {
    /// Returns the values of the key's columns; empty if one is missing.
    func keyValues(_ values: RecordValues) -> RecordValues {
        let key = description.key.compactMap { values[$0] }
        return key.count == description.key.count ? keyValues(key) : RecordValues()
    }

    /// Returns the values of the key's columns, given in the key's order.
    func keyValues(_ key: [SQLValue]) -> RecordValues {
        guard key.count == description.key.count else { return RecordValues() }
        return RecordValues(names: description.key, values: key)
    }

    /// Returns the rowid of the row that the last INSERT made; 0 if the table has no rowids.
    func madeRowID(_ connection: Connection) -> Int64 {
        description.hasRowID ? connection.lastInsertedRowID : 0
    }

    /// The key column that a DEFAULT fills, if this column is the whole key.
    var madeByDefault: String? {
        guard description.key.count == 1, keyKind == nil, description.rowIDColumn == nil,
            let column = description.column(description.key[0]), column.hasDefault
        else { return nil }
        return column.name
    }

    /// Returns the error for a record that has no value for the table.
    func hasNone(of values: RecordValues) -> StoreError {
        StoreError(
            .unknown,
            "The record has nothing for “\(description.name)”: it has"
                + " \(values.names.joined(separator: ", ")), and the table has"
                + " \(description.columns.map(\.name).joined(separator: ", ")).")
    }

    /// Returns the key among the values, if the key is one column.
    func key(of values: RecordValues) -> RecordID? {
        guard description.key.count == 1, let value = values[description.key[0]] else { return nil }
        return RecordID(value)
    }
}

extension WriteContext {
    /// Runs one statement that writes.
    func run(_ sql: String, _ arguments: [SQLValue]) throws {
        let statement = try session.statement(sql, arguments)
        defer { statement.reset() }
        while try statement.step() {}
        session.noteUnclearWrites(statement)
    }

    /// Runs an INSERT, and returns its outcome with the key that a DEFAULT has made.
    func insertReturning(
        _ column: String, _ sql: String, _ arguments: [SQLValue]
    ) throws -> RowOutcome {
        var outcome = RowOutcome.notWritten
        try session.forEachRow("\(sql) RETURNING \(SQLName.quoted(column))", arguments) { row in
            outcome = .written(RecordID(try row.value(at: 0)) ?? .integer(0))
        }
        return outcome
    }

    /// Returns the result of `insert` for a row that exists.
    func id(of key: [SQLValue], _ statements: TableStatements) throws -> RecordID {
        if key.count == 1, let id = RecordID(key[0]) { return id }
        guard statements.description.hasRowID else { return .integer(0) }
        var rowID: Int64 = 0
        try session.forEachRow(
            "SELECT rowid FROM \(statements.table) WHERE \(statements.keyCondition())", key
        ) { rowID = try $0.get(at: 0) }
        return .integer(rowID)
    }

    /// Makes the key of a new record, if the record has none and SQLite will not make it.
    /// - Returns: The new key; nil if the values contain one, or if SQLite makes it.
    func makeKey(
        for values: inout RecordValues, _ statements: TableStatements
    ) throws -> RecordID? {
        let description = statements.description
        guard description.key.count == 1, let name = description.key.first else { return nil }
        if let value = values[name], !value.isNull {
            guard statements.keyKind != .integer else {
                throw StoreError(
                    .value,
                    "The key of “\(description.name)” is an integer and is made by Martlet; leave"
                        + " it empty to insert, or update the record that has it.")
            }
            if let entity = statements.entity, let id = RecordID(value),
                let mismatch = RecordTable.mismatch(id, entity)
            {
                throw StoreError(.value, "The key of “\(description.name)”: \(mismatch).")
            }
            return nil
        }
        if statements.keyKind == nil {
            if description.rowIDColumn != nil || statements.madeByDefault != nil {
                values[name] = nil
                return nil
            }
            let kind = DeclaredType.kind(of: description.column(name)?.declaredType ?? "")
            guard kind == .text || kind == .any else {
                throw StoreError(
                    .value,
                    "The record carries no value for the key column “\(name)” of"
                        + " “\(description.name)”, and only integers that are rowids and texts are"
                        + " made; give it one.")
            }
        }
        let made = try newKey(statements)
        values[name] = SQLValue(made)
        return made
    }

    /// Returns a key for a new record of a table whose keys SQLite does not make.
    func newKey(_ statements: TableStatements) throws -> RecordID {
        statements.keyKind == .integer ? try takeTemporaryID() : .text(newTextKey())
    }
}
