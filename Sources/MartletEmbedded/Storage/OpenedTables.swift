import MartletModel
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Notices that another program has renamed or dropped a table or a column of an open data set.
struct OpenedTables {
    private let schema: Schema
    /// The version of the file's schema that was found to have everything.
    private var whole: Int64?

    /// - Parameter schema: The schema with which the data set was opened.
    init(_ schema: Schema) {
        self.schema = schema
    }

    /// Returns the fault if the file lacks a table or a column of the schema; nil if it has all. It is cheap
    /// unless the file's schema has changed since the last call.
    mutating func fault(on connection: Connection) throws(SQLiteError) -> StorageFault? {
        let version = try connection.integer("PRAGMA main.schema_version")
        guard version == nil || version != whole else { return nil }
        for type in schema.types {
            let find = try connection.statement(
                "SELECT name FROM pragma_table_xinfo(?1, 'main')")
            find.bind(1, text: type.name)
            let names = try find.rows { (row) throws(SQLiteError) in SQLName.folded(row.text(0)) }
            find.reset()
            let columns = [type.key] + type.attributes.map(\.name)
            guard let missing = columns.first(where: { !names.contains(SQLName.folded($0)) })
            else { continue }
            let what = names.isEmpty ? "the table" : "the column “\(missing)” of the table"
            return StorageFault(
                .changed,
                """
                another program renamed or dropped \(what) “\(type.name)”; nothing is served until it is \
                there again, or until a server with another schema is started
                """)
        }
        whole = version
        return nil
    }
}
