package import SQLiteKit

extension SchemaMigration {
    /// The statements that make the user's tables anew, and nothing else of the schema.
    package static func tables(of connection: Connection) throws(SQLiteError) -> [String] {
        try SchemaObject.all(in: connection).filter { $0.kind == .table }.map(\.sql)
    }
}
