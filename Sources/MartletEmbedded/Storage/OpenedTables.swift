import MartletModel
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Notices that another program has renamed, dropped, exchanged or rebuilt tables or columns of a data set's
/// file, by the columns that the server noted in `martlet_columns`.
///
/// A value or a row that another program took away would otherwise count as one that was never there, and
/// policies would judge by it. SQLite keeps the order of columns: a renamed column keeps its position, and an
/// added one comes last. So each noted column must still have its position and its name.
struct OpenedTables {
    /// The version of the file's schema that was found to be as noted.
    private var whole: Int64?

    /// Returns the fault if the tables are not as noted, or lack the triggers that note external writes; nil if all
    /// is well. It is cheap unless the file's schema has changed since the last call.
    mutating func fault(on connection: Connection) throws(SQLiteError) -> StorageFault? {
        let version = try connection.integer("PRAGMA main.schema_version")
        guard version == nil || version != whole else { return nil }
        // An older version may have written the file.
        guard try Self.areNoted(on: connection) else { return nil }
        let found = try Self.find(on: connection)
        if let difference = Self.difference(found) {
            return StorageFault(
                .changed,
                """
                \(difference); nothing is served until that is undone, or until a server with another schema \
                is started
                """)
        }
        if let table = try Self.unwatched(found, on: connection) {
            return StorageFault(.changed, "another program has made the table “\(table)” again")
        }
        whole = version
        return nil
    }

    /// Returns the first difference between the tables and the notes, in words.
    private static func difference(_ found: Found) -> String? {
        for type in found.types {
            for (position, column) in type.noted.enumerated() {
                let isThere =
                    position < type.columns.count
                    && SQLName.folded(type.columns[position]) == SQLName.folded(column)
                if !isThere { return words(of: column, type.name, among: type.columns) }
            }
        }
        return nil
    }

    private static func words(of column: String, _ table: String, among names: [String]) -> String {
        if names.isEmpty { return "another program renamed or dropped the table “\(table)”" }
        guard names.contains(where: { SQLName.folded($0) == SQLName.folded(column) }) else {
            return
                "another program renamed or dropped the column “\(column)” of the table “\(table)”"
        }
        return """
            the column “\(column)” of the table “\(table)” has another position than before, so it may be \
            another column: another program exchanged names, or rebuilt the table in another order
            """
    }

    /// Returns a table without the triggers that note external writes.
    private static func unwatched(
        _ found: Found, on connection: Connection
    ) throws(SQLiteError) -> String? {
        let list = try connection.statement(
            "SELECT name, tbl_name FROM main.sqlite_schema WHERE type = 'trigger'")
        defer { list.reset() }
        let tables = Dictionary(
            try list.rows { (row) throws(SQLiteError) in (row.text(0), SQLName.folded(row.text(1)))
            },
            uniquingKeysWith: { first, _ in first })
        return found.types.first { type in
            ["insert", "update", "delete"].contains {
                tables["martlet_outside_\($0)_\(type.number)"] != SQLName.folded(type.name)
            }
        }?.name
    }

    private static func areNoted(on connection: Connection) throws(SQLiteError) -> Bool {
        try connection.integer(
            "SELECT count(*) FROM main.sqlite_schema WHERE name = 'martlet_columns'") == 1
    }
}

// MARK: - At the opening

extension OpenedTables {
    /// The columns of the noted types' tables as a server finds them when it opens the file.
    struct Found {
        fileprivate var types: [(number: Int64, name: String, noted: [String], columns: [String])] =
            []
    }

    /// Reads the notes, and the columns that the tables have now.
    static func find(on connection: Connection) throws(SQLiteError) -> Found {
        var found = Found()
        let notes = try connection.statement(
            """
            SELECT c.type, t.name, c.name FROM main.martlet_columns AS c \
            JOIN main.martlet_types AS t ON t.number = c.type ORDER BY c.type, c.position
            """)
        defer { notes.reset() }
        while try notes.step() {
            let number = notes.integer(0)
            if found.types.last?.number != number {
                let name = notes.text(1)
                found.types.append((number, name, [], try columns(of: name, on: connection)))
            }
            found.types[found.types.count - 1].noted.append(notes.text(2))
        }
        return found
    }

    /// Checks that the file still had every noted column that the schema has, before the schema was applied.
    /// Otherwise the server would make the column or the table again, empty.
    /// - Throws: `SchemaError` with the remedy.
    static func check(_ found: Found, _ schema: Schema) throws(SchemaError) {
        for type in found.types {
            guard let wanted = schema[type.name] else { continue }
            let names = Set(([wanted.key] + wanted.attributes.map(\.name)).map(SQLName.folded))
            guard let column = firstMissing(type.noted, in: type.columns, wanted: names) else {
                continue
            }
            throw SchemaError(
                """
                \(words(of: column, type.name, among: type.columns)). Give it its name and position back, or \
                restore a backup; if the loss is wanted, take it out of the schema file
                """)
        }
    }

    /// Returns the first noted column that is wanted and not found in its place. A column that is wanted no more
    /// may be gone, or have another name.
    private static func firstMissing(
        _ noted: [String], in found: [String], wanted: Set<String>
    ) -> String? {
        let known = Set(noted.map(SQLName.folded))
        var rest = found.map(SQLName.folded)[...]
        for name in noted {
            let column = SQLName.folded(name)
            if rest.first == column {
                rest.removeFirst()
            } else if wanted.contains(column) {
                return name
            } else if let next = rest.first, !known.contains(next) {
                rest.removeFirst()
            }
        }
        return nil
    }

    /// Notes the columns of a schema's tables as they are now.
    static func note(_ schema: Schema, on connection: Connection) throws(SQLiteError) {
        try connection.run("DELETE FROM martlet_columns")
        for type in schema.types {
            let note = try connection.statement(
                """
                INSERT INTO martlet_columns (type, position, name) SELECT t.number, x.cid, x.name \
                FROM martlet_types AS t, pragma_table_xinfo(t.name, 'main') AS x WHERE t.name = ?1
                """)
            defer { note.reset() }
            note.bind(1, text: type.name)
            while try note.step() {}
        }
    }

    private static func columns(
        of table: String, on connection: Connection
    ) throws(SQLiteError) -> [String] {
        let list = try connection.statement(
            "SELECT name FROM pragma_table_xinfo(?1, 'main') ORDER BY cid")
        defer { list.reset() }
        list.bind(1, text: table)
        return try list.rows { (row) throws(SQLiteError) in row.text(0) }
    }
}
