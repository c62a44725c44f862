internal import MartletModel
internal import MartletStore
package import SQLiteKit
internal import SQLiteRecords

extension LocalStore {
    /// Drops all the app's tables with their records, lets `make` create others, and sets capture
    /// up for these.
    ///
    /// Runs in the caller's transaction. Afterwards this store and any other on the file are
    /// unusable: open the file again. Noted writes must have been taken before.
    /// - Precondition: Foreign keys are not enforced on the connection.
    /// - Parameter make: Creates the tables, empty, on the connection that it gets.
    /// - Throws: Errors of `make`; `StoreError` `.schema` for tables that cannot be synchronised or
    ///   are not empty.
    package func replaceTables(_ make: (Connection) throws -> Void) throws {
        if let away = try MovedTables(connection).away.first { throw away.refusal }
        try CaptureTriggers.dropAll(connection)
        try SchemaMigration.dropAll(in: connection)
        try make(connection)
        connection.clearStatementCache()
        let file = DeviceFile(connection: connection)
        let schema = try file.schema()
        for type in schema.types {
            let name = SQLName.quoted(type.name)
            guard try connection.integer("SELECT 1 FROM \(name) LIMIT 1") == nil else {
                throw StoreError(
                    .schema,
                    "The table \(type.name) was recreated with records in it. Make it empty: its"
                        + " records come from the server.")
            }
        }
        try file.setUpCapture(of: schema, numbers: file.numbers(of: schema))
        connection.clearStatementCache()
    }
}
