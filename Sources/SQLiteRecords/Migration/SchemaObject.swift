internal import SQLiteKit

/// A user's table, index, view or trigger, as `sqlite_schema` lists it.
struct SchemaObject {
    enum Kind: String {
        case table
        case virtualTable
        case index
        case view
        case trigger

        var word: String { self == .virtualTable ? "virtual table" : rawValue }
    }

    let kind: Kind
    let name: String
    let table: String
    let sql: String

    /// Returns all objects of `main`, in the order of their creation, without SQLite's own,
    /// Martlet's own, and the tables in which virtual tables store their data.
    static func all(in connection: Connection) throws(SQLiteError) -> [SchemaObject] {
        let statement = try connection.statement(
            """
            SELECT object.type, object.name, object.tbl_name, object.sql, listed.type \
            FROM main.sqlite_schema AS object LEFT JOIN pragma_table_list AS listed \
            ON listed.schema = 'main' AND listed.name = object.tbl_name \
            WHERE object.sql IS NOT NULL AND listed.type IS NOT 'shadow' \
            AND object.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
            AND object.name NOT LIKE 'martlet\\_%' ESCAPE '\\' \
            AND object.tbl_name NOT LIKE 'martlet\\_%' ESCAPE '\\' ORDER BY object.rowid
            """)
        let objects = try statement.rows { (row) throws(SQLiteError) -> SchemaObject? in
            let isVirtual = row.text(0) == "table" && row.text(4) == "virtual"
            guard let kind = Kind(rawValue: row.text(0)) else { return nil }
            return SchemaObject(
                kind: isVirtual ? .virtualTable : kind, name: row.text(1), table: row.text(2),
                sql: row.text(3))
        }
        return objects.compactMap { $0 }
    }
}
