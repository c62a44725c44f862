package import MartletModel
package import SQLiteKit

/// Changes a database until it fits a script of CREATE statements.
///
/// It adds everything that can be added without touching a record: tables, columns, indexes, views,
/// triggers. It refuses any other change (a dropped or redeclared column, another key), because
/// that would change records, and devices with unsent work would not understand it.
///
/// ```swift
/// let schema = try SchemaMigration.apply(
///     script: "CREATE TABLE clubs(id INTEGER PRIMARY KEY, name TEXT NOT NULL)", to: connection)
/// ```
package enum SchemaMigration {
    /// Brings a database to the schema of a script, in one transaction, or in one savepoint if a
    /// transaction is open. A second run changes nothing. Indexes, views, triggers and virtual
    /// tables that the script does not name stay.
    /// - Returns: The new schema of the database.
    /// - Throws: `SchemaError` for a script or a change that is refused, `SQLiteError`; nothing is
    ///   changed then.
    package static func apply(script: String, to connection: Connection) throws -> Schema {
        try SchemaPlan(script: script, for: connection).run(on: connection)
    }

    /// Returns the statements that recreate the user's tables, indexes, views and triggers, each
    /// ended with a semicolon and a line break.
    /// - Parameter triggers: Whether to include the user's triggers. A device receives the effects
    ///   of the server's triggers, and must not repeat them.
    /// - Throws: `SQLiteError` if the database cannot be read.
    package static func ddl(
        of connection: Connection, triggers: Bool = true
    ) throws(SQLiteError) -> String {
        try SchemaObject.all(in: connection)
            .filter { triggers || $0.kind != .trigger }
            .map { "\($0.sql);\n" }
            .joined()
    }
}
