public import MartletModel

/// Writing. Hooks see the writes to each part, under the part's name.
extension SplitTable {
    /// Inserts a record. If its key is empty, one is made: the next number over all parts, or a
    /// random UUID for a text key.
    /// - Returns: The record's key.
    /// - Throws: `StoreError` `.value` if no part has the record's kind, `.constraint` if another
    ///   part already has the key or SQLite skips a row; any error of a part's insert.
    @discardableResult
    public func insert(_ record: some Record, in context: WriteContext) throws -> RecordID {
        try prepare(context, record)
        return try context.savepoint {
            let key = try keyForNew(record, context)
            switch rule {
            case .columns:
                for (index, part) in parts.enumerated() {
                    let values = try values(of: record, key, part, context)
                    if index == 0 || hasContent(values) { try insert(values, key, part, context) }
                }
            case .kind, .modulo:
                let values = try values(of: record, key, parts[0], context)
                let index = try partIndex(of: key) ?? partIndex(ofKindIn: values)
                let own = try self.values(of: record, key, parts[index], context)
                try insert(own, key, parts[index], context)
            }
            return try RecordID(sqlValue: key)
        }
    }

    /// Changes the record that has the key of `record`, to the values in `record`.
    /// - Returns: Whether there is such a record.
    /// - Throws: `StoreError` `.value` if `record` has no key or no part has its kind,
    ///   `.constraint` if SQLite skips a row; any error of a part's update.
    @discardableResult
    public func update(_ record: some Record, in context: WriteContext) throws -> Bool {
        try prepare(context, record)
        guard let key = try givenKey(record, context) else {
            throw StoreError(
                .value,
                "The record carries no value for the key column “\(key)” of “\(name)”; insert it"
                    + " first.")
        }
        return try context.savepoint {
            switch rule {
            case .columns: try updatePieces(record, key, context)
            case .kind, .modulo: try updateRow(record, key, context)
            }
        }
    }

    /// Changes the record that has the key of `record`, or inserts it if there is none.
    /// - Returns: The record's key.
    /// - Throws: The errors of `insert` and `update`.
    @discardableResult
    public func upsert(_ record: some Record, in context: WriteContext) throws -> RecordID {
        if let key = try givenKey(record, context), try update(record, in: context) {
            return try RecordID(sqlValue: key)
        }
        return try insert(record, in: context)
    }

    /// Deletes the record with a key, in every part.
    /// - Returns: Whether a row was deleted.
    /// - Throws: `StoreError` `.constraint` if a reference forbids the deletion; any error of a
    ///   hook.
    @discardableResult
    public func delete(_ key: some ColumnValue, in context: WriteContext) throws -> Bool {
        try prepare(context)
        let value = key.sqlValue
        if let index = partIndex(of: value) { return try parts[index].delete(value, in: context) }
        return try context.savepoint {
            // The last part is deleted first, because references between parts lead to the first
            // one.
            var isFound = false
            for part in parts.reversed() where try part.delete(value, in: context) {
                isFound = true
            }
            return isFound
        }
    }

    /// Deletes the records that meet a condition.
    /// - Returns: The number of records that met it.
    /// - Throws: `StoreError` `.unknown` for a column that does not exist; the errors of deleting
    ///   by a key.
    @discardableResult
    public func delete(where condition: Condition, in context: WriteContext) throws -> Int {
        let keys = try query().filter(condition).select(Column<SQLValue>(key)).fetch(in: context)
        for key in keys { try delete(key, in: context) }
        return keys.count
    }
}

extension SplitTable {
    /// Creates the missing parts, and checks that the parts fit together.
    /// - Throws: `StoreError` `.unknown` if a record of the own element has a name without a column
    ///   in any part.
    private func prepare<Item: Record>(_ context: WriteContext, _ record: Item) throws {
        try prepare(context)
        guard Item.self == Element.self else { return }
        let columns = try source.description(name, context.session).columns.map(\.name)
        try OwnNames(table: name, columns: columns, elsewhere: storedElsewhere).check(record)
    }

    private func prepare(_ context: WriteContext) throws {
        try context.checkValid()
        _ = try source.description(name, context.session)
        for part in parts where try part.statements(context).keyKind == .integer {
            throw StoreError(
                .misuse,
                "“\(part.tableName)” is kept in step and has an integer key, which the server"
                    + " assigns for each table by itself; give the parts of “\(name)” text keys.")
        }
    }

    private func updatePieces(
        _ record: some Record, _ key: SQLValue, _ context: WriteContext
    ) throws -> Bool {
        guard try parts[0].exists(key, in: context) else { return false }
        for part in parts {
            let values = try values(of: record, key, part, context)
            guard values.count > 1, try !part.update(values, in: context) else { continue }
            guard try !part.exists(key, in: context) else { throw passedOver(part, key) }
            if hasContent(values) { try insert(values, key, part, context) }
        }
        return true
    }

    private func updateRow(
        _ record: some Record, _ key: SQLValue, _ context: WriteContext
    ) throws -> Bool {
        guard
            let index = try partIndex(of: key)
                ?? parts.indices.first(where: { try parts[$0].exists(key, in: context) })
        else { return false }
        let part = parts[index]
        let values = try values(of: record, key, part, context)
        guard case .kind(let column, _) = rule, values[column] != nil,
            case let wanted = try self.partIndex(ofKindIn: values), wanted != index
        else {
            guard try part.update(values, in: context) else { throw passedOver(part, key) }
            return true
        }
        // The record has another kind now. The whole row moves, with the values that it already
        // had.
        guard var row = try part.find(key, in: context) else { return false }
        row.fill(from: values)
        try part.delete(key, in: context)
        let columns = try parts[wanted].statements(context).columns
        try insert(columns.filter(row), key, parts[wanted], context)
        return true
    }

    /// Inserts a row. Either all rows of a record are written, or none.
    /// - Throws: `StoreError` `.constraint` if SQLite skips the row.
    private func insert(
        _ values: RecordValues, _ key: SQLValue, _ part: PlainTable<RecordValues>,
        _ context: WriteContext
    ) throws {
        let made = try part.insert(values, in: context)
        guard try made != .integer(0) || part.exists(key, in: context) else {
            throw passedOver(part, key)
        }
    }

    private func passedOver(_ part: PlainTable<RecordValues>, _ key: SQLValue) -> StoreError {
        RowOutcome.passedOver(part.tableName, RecordID(key))
    }

    private func partIndex(ofKindIn values: RecordValues) throws -> Int {
        guard case .kind(let column, let kinds) = rule else { return 0 }
        guard let kind = values[column], let index = kinds.firstIndex(of: kind) else {
            throw StoreError(
                .value,
                "The record's “\(column)” is of no kind that “\(name)” has a table for; it has"
                    + " \(kinds.count). Set it to one of these, or add a part.")
        }
        return index
    }

    /// Returns a record's values for a part, with the key.
    private func values(
        of record: some Record, _ key: SQLValue, _ part: PlainTable<RecordValues>,
        _ context: WriteContext
    ) throws -> RecordValues {
        var values = try record.dictionaryRepresentation(
            columns: try part.statements(context).columns, table: part.tableName)
        values[self.key] = key
        return values
    }

    private func hasContent(_ values: RecordValues) -> Bool {
        zip(values.names, values.values).contains { $0 != key && !$1.isNull }
    }

    private func givenKey(_ record: some Record, _ context: WriteContext) throws -> SQLValue? {
        let columns = try parts[0].statements(context).columns
        let values = try record.dictionaryRepresentation(
            columns: columns, table: parts[0].tableName)
        guard let key = values[key], !key.isNull else { return nil }
        return key
    }

    private func keyForNew(_ record: some Record, _ context: WriteContext) throws -> SQLValue {
        if let given = try givenKey(record, context) {
            if case .kind = rule, try parts.contains(where: { try $0.exists(given, in: context) }) {
                throw StoreError(
                    .constraint,
                    "A record with this key is already in one of the tables of “\(name)”; update"
                        + " it, or leave the key empty.")
            }
            return given
        }
        guard try parts[0].statements(context).description.rowIDColumn != nil else {
            return .text(context.newTextKey())
        }
        let column = Column<Int64>(key)
        var highest: Int64 = 0
        for part in parts {
            let found = try part.query().select(column.max()).fetch(in: context)
            highest = max(highest, found.compactMap(\.self).first ?? 0)
        }
        return .integer(highest + 1)
    }
}
