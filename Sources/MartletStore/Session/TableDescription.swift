internal import SQLiteKit
internal import SQLiteRecords

/// A table as the database describes it.
public struct TableDescription: Hashable, Sendable {
    /// The name as the schema declares it.
    public let name: String
    /// All columns, in order, without the hidden columns of virtual tables.
    public let columns: [ColumnDescription]
    /// The names of the key's columns, in the key's order; empty if the table declares no key.
    public let key: [String]
    /// The name of the column that is the rowid itself (`INTEGER PRIMARY KEY`); nil if there is
    /// none.
    package let rowIDColumn: String?
    /// Whether the rows have rowids; false for views, virtual tables and WITHOUT ROWID tables.
    package let hasRowID: Bool
    /// Whether a module stores the rows (`CREATE VIRTUAL TABLE`), as for full-text search.
    package let isVirtual: Bool
    /// All indexes, in the order of their names.
    package let indexes: [IndexDescription]
    /// Whether the declaration contains the letters REPLACE, as in ON CONFLICT REPLACE. A write to
    /// such a table may delete rows that it does not name.
    let mayReplaceRows: Bool

    /// Whether it is a view. A view has no key, and SQLite gives null for its rowids.
    var isView: Bool { key.isEmpty && !hasRowID && !isVirtual }

    /// Returns the description of a column; nil if there is no column of that name.
    /// - Complexity: O(*n*), *n* columns.
    public func column(_ name: String) -> ColumnDescription? {
        columns.first { $0.name == name }
            ?? columns.first { SQLName.folded($0.name) == SQLName.folded(name) }
    }
}

/// A column as the database describes it.
public struct ColumnDescription: Hashable, Sendable {
    /// The name as the schema declares it.
    public let name: String
    /// The declared type, as written in the schema; empty if there is none.
    public let declaredType: String
    /// Whether the column is NOT NULL.
    public let isRequired: Bool
    /// Whether the column has a DEFAULT.
    public let hasDefault: Bool
    /// Whether the database computes the column.
    public let isGenerated: Bool

    /// Whether a new record can leave the column out.
    public var isOptional: Bool { !isRequired || hasDefault || isGenerated }
}

/// An index as the database describes it.
package struct IndexDescription: Hashable, Sendable {
    /// The index's name.
    package let name: String
    /// The index's columns, in order; nil stands for an expression.
    package let columns: [String?]
    /// Whether the index is UNIQUE.
    package let isUnique: Bool
    /// Whether the index has a WHERE clause.
    package let isPartial: Bool
}

extension TableDescription {
    /// Reads the description of a table or a view.
    /// - Returns: The description; nil if there is no table or view of that name.
    static func read(_ name: String, _ connection: Connection) throws(SQLiteError) -> Self? {
        let find = try connection.statement(
            """
            SELECT name, type, wr FROM pragma_table_list
            WHERE schema = 'main' AND name = ?1 COLLATE NOCASE
            """)
        find.bind(1, text: name)
        let found = try find.rows { (row) throws(SQLiteError) in
            (row.text(0), row.text(1), row.integer(2) != 0)
        }
        guard let (declared, kind, isWithoutRowID) = found.first else { return nil }
        var key: [(Int64, String)] = []
        let rows = try connection.statement(
            """
            SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden
            FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid
            """)
        rows.bind(1, text: declared)
        let columns = try rows.rows { (row) throws(SQLiteError) in
            if row.integer(4) > 0 { key.append((row.integer(4), row.text(0))) }
            return ColumnDescription(
                name: row.text(0), declaredType: row.text(1), isRequired: row.integer(2) != 0,
                hasDefault: row.integer(3) != 0, isGenerated: row.integer(5) != 0)
        }
        let indexes = try readIndexes(declared, connection)
        let keyNames = key.sorted { $0.0 < $1.0 }.map(\.1)
        let hasRowID = kind == "table" && !isWithoutRowID
        return TableDescription(
            name: declared, columns: columns, key: keyNames,
            rowIDColumn: hasRowID ? try rowIDColumn(declared, keyNames, columns, connection) : nil,
            hasRowID: hasRowID, isVirtual: kind == "virtual", indexes: indexes,
            mayReplaceRows: try mayReplaceRows(declared, connection))
    }

    private static func mayReplaceRows(
        _ table: String, _ connection: Connection
    ) throws(SQLiteError) -> Bool {
        let find = try connection.statement(
            "SELECT 1 FROM sqlite_master WHERE name = ?1 AND sql LIKE '%REPLACE%'")
        find.bind(1, text: table)
        return try !find.rows { (_) throws(SQLiteError) in true }.isEmpty
    }

    /// Returns the column that is the rowid; nil if there is none. A single key column declared
    /// INTEGER is the rowid, unless it is declared DESC and therefore has its own index
    /// (https://sqlite.org/lang_createtable.html#rowid).
    private static func rowIDColumn(
        _ table: String, _ key: [String], _ columns: [ColumnDescription], _ connection: Connection
    ) throws(SQLiteError) -> String? {
        guard key.count == 1,
            let column = columns.first(where: { $0.name == key[0] }),
            SQLName.folded(column.declaredType) == "integer"
        else { return nil }
        let ownIndex = try connection.statement(
            "SELECT 1 FROM pragma_index_list(?1, 'main') WHERE origin = 'pk'")
        ownIndex.bind(1, text: table)
        let found = try ownIndex.rows { (_) throws(SQLiteError) in true }
        return found.isEmpty ? column.name : nil
    }

    private static func readIndexes(
        _ table: String, _ connection: Connection
    ) throws(SQLiteError) -> [IndexDescription] {
        let list = try connection.statement(
            """
            SELECT name, "unique", partial FROM pragma_index_list(?1, 'main') ORDER BY name
            """)
        list.bind(1, text: table)
        let found = try list.rows { (row) throws(SQLiteError) in
            (row.text(0), row.integer(1) != 0, row.integer(2) != 0)
        }
        var indexes: [IndexDescription] = []
        for (name, isUnique, isPartial) in found {
            let columns = try connection.statement(
                "SELECT name FROM pragma_index_info(?1, 'main') ORDER BY seqno")
            columns.bind(1, text: name)
            indexes.append(
                IndexDescription(
                    name: name,
                    columns: try columns.rows { (row) throws(SQLiteError) in
                        row.isNull(0) ? nil : row.text(0)
                    }, isUnique: isUnique, isPartial: isPartial))
        }
        return indexes
    }
}
