package import SQLiteKit

extension SchemaMigration {
    /// Returns the statements that recreate the user's tables, and nothing else of the schema.
    package static func tables(of connection: Connection) throws(SQLiteError) -> [String] {
        try SchemaObject.all(in: connection).filter { $0.kind == .table }.map(\.sql)
    }
}
