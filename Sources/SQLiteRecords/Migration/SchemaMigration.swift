public import MartletModel
public import SQLiteKit

/// Brings a database to what a script of CREATE statements describes.
///
/// What can be added without touching a record is added: tables, columns, indexes, views,
/// triggers. Anything else (a column dropped or declared anew, another key) is refused: it changes
/// records, and devices with unsent work would not understand it.
public enum SchemaMigration {
    /// Runs in one transaction (or one savepoint, where a transaction is open); doing it again
    /// changes nothing. Indexes, views, triggers and virtual tables the script does not
    /// name stay.
    /// - Returns: The schema of the database as it then is.
    /// - Throws: `SchemaError` for a script or a change that is refused, `SQLiteError`; in either
    ///   case nothing has changed.
    public static func apply(script: String, to connection: Connection) throws -> Schema {
        try SchemaPlan(script: script, for: connection).run(on: connection)
    }

    /// The statements that make the user's tables, indexes, views and triggers anew, each ended
    /// with a semicolon and a line break.
    /// - Parameter triggers: Whether the user's triggers are among them. A device is told what the
    ///   server's triggers did, and must not do it a second time.
    public static func ddl(
        of connection: Connection, triggers: Bool = true
    ) throws(SQLiteError) -> String {
        try SchemaObject.all(in: connection)
            .filter { triggers || $0.kind != .trigger }
            .map { "\($0.sql);\n" }
            .joined()
    }
}
