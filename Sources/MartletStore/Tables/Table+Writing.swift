public import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// Writing rows.
extension Table {
    /// Inserts a record.
    ///
    /// A key the record leaves empty is made: by SQLite for integers, as a temporary id where the
    /// table is kept in step, as a random UUID for texts.
    /// - Returns: The record's key; where that is no number and no text, or of several columns, the
    ///   rowid, and 0 where the table has none. It is 0 as well if SQLite passed the record over, because a
    ///   constraint's ON CONFLICT IGNORE or a trigger says so.
    /// - Throws: `StoreError` `.unknown`, `.value` or `.constraint`; what a hook throws.
    @discardableResult
    public func insert(_ record: some Record, in context: WriteContext) throws -> RecordID {
        try insert(record, try statements(context), context)
    }

    /// Inserts records, in order.
    /// - Returns: Their keys.
    @discardableResult
    public func insert<Item: Record>(
        contentsOf records: some Sequence<Item>, in context: WriteContext
    ) throws -> [RecordID] {
        let statements = try statements(context)
        return try records.map { record in try insert(record, statements, context) }
    }

    /// Changes the record with the key that `record` carries, to the values it carries.
    /// - Returns: Whether the record was written: not if there is none, or if SQLite passed it over, because a
    ///   constraint's ON CONFLICT IGNORE or a trigger says so.
    @discardableResult
    public func update(_ record: some Record, in context: WriteContext) throws -> Bool {
        let statements = try statements(context)
        let values = try values(of: record, statements)
        return try update(values, statements, context)
    }

    /// Changes records by the keys they carry.
    /// - Returns: How many of them were written.
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

    /// Changes the record with the key that `record` carries, or inserts it.
    /// - Returns: The record's key; 0 if SQLite passed the record over.
    @discardableResult
    public func upsert(_ record: some Record, in context: WriteContext) throws -> RecordID {
        let statements = try statements(context)
        return try upsert(try values(of: record, statements), statements, context)
    }

    /// Changes or inserts records, in order.
    /// - Returns: Their keys.
    @discardableResult
    public func upsert<Item: Record>(
        contentsOf records: some Sequence<Item>, in context: WriteContext
    ) throws -> [RecordID] {
        let statements = try statements(context)
        return try records.map { record in
            try upsert(try values(of: record, statements), statements, context)
        }
    }

    /// Deletes the record with a key, and what its references' ON DELETE actions say.
    /// - Returns: Whether there was such a record.
    @discardableResult
    public func delete(_ key: some ColumnValue, in context: WriteContext) throws -> Bool {
        let statements = try statements(context)
        return try delete([try context.resolve(key.sqlValue, statements)], statements, context)
    }

    /// Deletes the records with these keys.
    /// - Returns: How many there were.
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

    /// Deletes the record with the key that `record` carries.
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
    /// - Parameter allowing: Values that stand for others and are not checked.
    func values(
        of record: some Record, _ statements: TableStatements,
        allowing: (SQLValue) -> Bool = { _ in false }
    ) throws -> RecordValues {
        try checkNames(of: record, statements)
        let values = try record.dictionaryRepresentation(
            columns: statements.columns, table: tableName)
        try statements.check(values, allowing: allowing)
        if values.isEmpty {
            // All defaults is what a record without anything means, not one for another table.
            let others = try record.dictionaryRepresentation(columns: .all, table: tableName)
            guard others.isEmpty else { throw statements.hasNone(of: others) }
        }
        return values
    }

    /// Refuses a record of the table's own element that holds a name without a column.
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
            // A constraint may have SQLite pass the record over. Its last rowid is that of another one then.
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
        var values = try context.resolvingReferences(given, statements)
        for name in statements.description.key { values[name] = nil }
        guard !values.isEmpty else { return try exists(key, statements, context) }
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

    /// Updates only what differs, where a reference was refused: for SQLite a reference that is set
    /// to what it is has changed, and its parent may be one that the device has yet to receive.
    private func updateLess(
        _ values: RecordValues, _ key: [SQLValue], _ statements: TableStatements,
        _ context: WriteContext, after error: any Error
    ) throws {
        guard let refusal = error as? SQLiteError, refusal.isForeignKeyViolation,
            let present = try context.rows(
                "SELECT \(SQLName.list(values.names)) FROM \(statements.table)"
                    + " WHERE \(statements.keyCondition)", key
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
        // Hooks are told of what happens, not of what was tried.
        if !context.session.hooks.isEmpty, try !exists(key, statements, context) {
            return try insert(values, statements, context)
        }
        if try update(values, statements, context) { return try context.id(of: key, statements) }
        // One that SQLite has passed over is there all the same.
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

    /// The values of the key's columns, with temporary ids replaced by permanent ones.
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
    /// The values of the key's columns among a row's; empty where one is missing.
    func keyValues(_ values: RecordValues) -> RecordValues {
        let key = description.key.compactMap { values[$0] }
        return key.count == description.key.count ? keyValues(key) : RecordValues()
    }

    /// The values of the key's columns, given in the key's order.
    func keyValues(_ key: [SQLValue]) -> RecordValues {
        guard key.count == description.key.count else { return RecordValues() }
        return RecordValues(names: description.key, values: key)
    }

    /// The rowid of the row that the last INSERT has made; 0 if the table has none.
    func madeRowID(_ connection: Connection) -> Int64 {
        description.hasRowID ? connection.lastInsertedRowID : 0
    }

    /// The key column that a DEFAULT fills, where that is the whole key.
    var madeByDefault: String? {
        guard description.key.count == 1, keyKind == nil, description.rowIDColumn == nil,
            let column = description.column(description.key[0]), column.hasDefault
        else { return nil }
        return column.name
    }

    /// What a record that has nothing for the table is refused with.
    func hasNone(of values: RecordValues) -> StoreError {
        StoreError(
            .unknown,
            "The record has nothing for “\(description.name)”: it has"
                + " \(values.names.joined(separator: ", ")), and the table has"
                + " \(description.columns.map(\.name).joined(separator: ", ")).")
    }

    /// The key that values carry, where it is one column.
    func key(of values: RecordValues) -> RecordID? {
        guard description.key.count == 1, let value = values[description.key[0]] else { return nil }
        return RecordID(value)
    }
}

extension WriteContext {
    /// Runs one writing statement.
    func run(_ sql: String, _ arguments: [SQLValue]) throws {
        let statement = try session.statement(sql, arguments)
        defer { statement.reset() }
        while try statement.step() {}
        session.noteUnclearWrites(statement)
    }

    /// Runs an INSERT.
    /// - Returns: The outcome, with the key that a DEFAULT has made.
    func insertReturning(
        _ column: String, _ sql: String, _ arguments: [SQLValue]
    ) throws -> RowOutcome {
        var outcome = RowOutcome.notWritten
        try session.forEachRow("\(sql) RETURNING \(SQLName.quoted(column))", arguments) { row in
            outcome = .written(RecordID(try row.value(at: 0)) ?? .integer(0))
        }
        return outcome
    }

    /// What `insert` returns, of a row that is there.
    func id(of key: [SQLValue], _ statements: TableStatements) throws -> RecordID {
        if key.count == 1, let id = RecordID(key[0]) { return id }
        guard statements.description.hasRowID else { return .integer(0) }
        var rowID: Int64 = 0
        try session.forEachRow(
            "SELECT rowid FROM \(statements.table) WHERE \(statements.keyCondition)", key
        ) { rowID = try $0.get(at: 0) }
        return .integer(rowID)
    }

    /// Gives a new record its key where it has none and SQLite will not make it.
    /// - Returns: The key made; nil where the values carry one or SQLite makes it.
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

    /// A key for a new record of a table whose keys SQLite does not make.
    func newKey(_ statements: TableStatements) throws -> RecordID {
        statements.keyKind == .integer ? try takeTemporaryID() : .text(newTextKey())
    }
}
