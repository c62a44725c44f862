package import SQLiteKit

extension SchemaMigration {
    /// Drops all the user's tables and views, with their records, indexes and triggers.
    ///
    /// Runs in the caller's transaction.
    /// - Precondition: Foreign keys are not enforced on the connection, because dropping a table
    ///   would otherwise act on the others.
    /// - Throws: `SQLiteError` if a statement fails.
    package static func dropAll(in connection: Connection) throws(SQLiteError) {
        connection.clearStatementCache()
        let objects = try SchemaObject.all(in: connection)
        // Views come first, because they may name any table.
        for object in objects where object.kind == .view {
            try connection.execute("DROP VIEW \(SQLName.quoted(object.name))")
        }
        for object in objects where object.kind == .table || object.kind == .virtualTable {
            try connection.execute("DROP TABLE \(SQLName.quoted(object.name))")
        }
    }
}
