import MartletModel
import PostgresKit
import SQLiteKit
import SQLiteRecords

/// Copies PostgreSQL's tables, as a plain reader sees them, into a SQLite file for the comparison
/// with the devices' files.
struct TableMirror {
    private let source: PostgresConnection
    private let schema: Schema

    init(_ source: PostgresConnection, _ schema: Schema) {
        self.source = source
        self.schema = schema
    }

    /// - Parameter script: The declarations of the tables for SQLite.
    /// - Returns: `path`.
    func write(to path: String, script: String) throws -> String {
        try DatabaseFile.remove(path, vfs: nil)
        let copy = try Connection(path: path)
        try copy.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        _ = try SchemaMigration.apply(script: script, to: copy)
        try copy.execute("PRAGMA foreign_keys = OFF")
        try copy.begin()
        try source.transaction {
            try source.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            for type in schema.types { try copyRows(of: type, to: copy) }
        }
        try copy.commit()
        return path
    }

    private func copyRows(of type: EntityType, to copy: Connection) throws {
        let table = RecordTable(type: type, connection: copy)
        let names = type.attributes.map(\.name)
        let columns = ([type.key] + names).map { PostgresConnection.quoted($0) }
            .joined(separator: ", ")
        let key = PostgresConnection.quoted(type.key)
        let statement = """
            SELECT \(columns) FROM \(PostgresConnection.quoted(type.name))
            WHERE \(key) > $1 ORDER BY \(key) LIMIT 10000
            """
        var last = Int64.min
        while true {
            let rows = try source.query(statement, [.integer(last)])
            for row in 0..<rows.count {
                last = try rows.integer(row, 0)
                var values: [Value] = []
                for column in 1..<rows.columnCount {
                    values.append(try value(rows.value(row, column)))
                }
                _ = try table.insert(
                    .integer(last), Attributes(names: names, values: values),
                    absentMeansNull: true)
            }
            if rows.count < 10_000 { return }
        }
    }

    private func value(_ value: PostgresValue) throws -> Value {
        switch value {
        case .null: return .null
        case .boolean(let value): return .boolean(value)
        case .integer(let value): return .integer(value)
        case .real(let value): return .real(Double(value))
        case .double(let value): return .real(value)
        default:
            guard let text = value.text else {
                throw DemoError("A column of the demo's tables has a type it does not know.")
            }
            return .text(text)
        }
    }
}
