extension DatabaseAccess {
    /// Opens a draft of a record: unsaved edits, which are notified of the record's changes before
    /// they are committed.
    /// - Parameters:
    ///   - table: The record's table.
    ///   - key: The value of the key column. A temporary id always finds its record.
    /// - Throws: `StoreError`: `.unknown` if there is no such record, `.misuse` for a table whose
    ///   key is not one column.
    public func draft<Element: ReadableRecord & Sendable>(
        of table: some Table<Element>, _ key: some ColumnValue
    ) async throws -> Draft<Element> {
        let key = key.sqlValue
        // This runs as a save, because saves run one after another. So no change falls between the
        // reading of the record and the draft's first notice.
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
