public import MartletModel

/// Records of synchronised types, by the name of the type. A value has the form in which SQLite
/// stores it, as in a row.
extension ReadContext {
    /// Returns a record's attributes in the table's order, including nulls, without the key; nil if
    /// there is no such record. A temporary id finds its record for ever.
    /// - Throws: `StoreError` `.unknown` if there is no such type; `.misuse` if the database is not
    ///   synchronised.
    /// - Complexity: One look-up by key.
    public func record(_ type: String, _ id: RecordID) throws -> RecordValues? {
        let table = try table(ofType: type)
        var values = try table.find(id, in: self)
        for name in try table.statements(self).description.key { values?[name] = nil }
        return values
    }

    /// Returns the table of a synchronised type.
    /// - Throws: `StoreError` `.unknown` if there is no such type; `.misuse` if the database is not
    ///   synchronised.
    fileprivate func table(ofType type: String) throws -> PlainTable<RecordValues> {
        try checkValid()
        _ = try synchronised().index(of: type)
        return PlainTable(type)
    }
}

extension WriteContext {
    /// Inserts a record of a synchronised type.
    ///
    /// For a value in a variable (a record's id, a date, an optional), write its `sqlValue`.
    ///
    /// ```swift
    /// let team = try context.insert("teams", ["name": "Falcons", "founded": 1987])
    /// try context.insert("players", ["name": "Ann", "team_id": team.sqlValue])
    /// ```
    /// - Parameters:
    ///   - type: The entity type's name.
    ///   - values: Values by attribute. A column without a value gets its default.
    ///   - id: The key, for a type with text keys; nil for a random one. Martlet always makes
    ///     integer keys.
    /// - Returns: The record's id. An integer id is temporary until the server has assigned the
    ///   permanent one. The result is 0, which no record has, if SQLite skips the record because of
    ///   a constraint's ON CONFLICT IGNORE or a trigger.
    /// - Throws: `StoreError` `.unknown` for an unknown type or attribute, `.value` for a value
    ///   that does not fit, `.misuse` for a value of the key or of a computed column, `.constraint`
    ///   for a violated constraint; any error of a hook.
    @discardableResult
    public func insert(
        _ type: String, _ values: RecordValues, id: String? = nil
    ) throws -> RecordID {
        let table = try table(ofType: type)
        let statements = try table.statements(self)
        try statements.checkAttributes(values)
        var values = values
        if let id { values[statements.description.key[0]] = .text(id) }
        return try table.insert(values, statements, self)
    }

    /// Changes attributes of a record. A temporary id finds its record for ever.
    /// - Returns: Whether the record was written. It is false if there is no such record, or if
    ///   SQLite skips it because of a constraint's ON CONFLICT IGNORE or a trigger.
    /// - Throws: `StoreError` `.unknown` for an unknown type or attribute, `.value` for a value
    ///   that does not fit, `.misuse` for a value of the key or of a computed column, `.constraint`
    ///   for a violated constraint; any error of a hook.
    @discardableResult
    public func update(_ type: String, _ id: RecordID, _ values: RecordValues) throws -> Bool {
        let table = try table(ofType: type)
        let statements = try table.statements(self)
        try statements.checkAttributes(values)
        return try table.update([resolve(SQLValue(id), statements)], values, statements, self)
    }

    /// Deletes a record, and carries out the ON DELETE actions of the references to it.
    /// - Returns: Whether a record was deleted.
    /// - Throws: `StoreError` `.unknown` for an unknown type, `.constraint` if a reference forbids
    ///   the deletion; any error of a hook.
    @discardableResult
    public func delete(_ type: String, _ id: RecordID) throws -> Bool {
        try table(ofType: type).delete(id, in: self)
    }
}
