extension DatabaseAccess {
    /// Opens a draft of a record: unsaved edits that hear of the record's changes before they are
    /// committed.
    /// - Parameters:
    ///   - table: The record's table.
    ///   - key: The value of the key column. A temporary id finds its record for ever.
    /// - Throws: `StoreError` `.unknown` where there is no such record, `.misuse` for a table
    ///   whose key is not one column.
    public func draft<Element: ReadableRecord & Sendable>(
        of table: some Table<Element>, _ key: some ColumnValue
    ) async throws -> Draft<Element> {
        let key = key.sqlValue
        // As a save, because saves come one after the other: no change falls between the reading
        // and the draft's first hearing of it.
        return try await write { context in
            let drafted = try DraftTable(table, in: context)
            guard let record = try drafted.read(key, in: context) else {
                var error = StoreError(
                    .unknown,
                    "There is no record with this key in “\(table.tableName)” to make a draft of.")
                error.table = table.tableName
                throw error
            }
            return Draft(record, table: drafted, database: self)
        }
    }
}
