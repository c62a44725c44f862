package import MartletCore
package import SQLiteKit

/// A unique index of a table, other than the primary key, with the terms by which SQLite compares
/// rows: columns or expressions, each with its collation, and the condition of a partial index.
///
/// Triggers need it, because a REPLACE removes conflicting rows without firing a trigger for them.
package struct UniqueIndex {
    private struct Term {
        /// The column or the expression as SQL, with its collation.
        let sql: String
        /// The stored column of the term; nil for an expression and a generated column.
        let column: String?
    }

    private let table: String
    private let columns: [String]
    private let terms: [Term]
    private let condition: String?

    /// The columns of the index, if an UPDATE of one of them is the only way for a row to conflict
    /// with another. Nil for an index over expressions or generated columns, and for a partial one.
    package var watchedColumns: [String]? {
        let plain = terms.compactMap(\.column)
        return condition == nil && plain.count == terms.count ? plain : nil
    }

    /// The condition, in the body of a trigger, that a row of the table shares all values of the
    /// index with NEW. It may hold for NEW's own row.
    package var isMetByNew: String {
        var parts = terms.map { term in
            let new = term.column.map { "NEW.\(SQLName.quoted($0))" } ?? ofNew(term.sql)
            return "\(term.sql) = \(new)"
        }
        if let condition { parts += ["(\(condition))", ofNew("(\(condition))")] }
        return parts.joined(separator: " AND ")
    }

    /// Returns SQL for the value of an expression for NEW. It evaluates the expression as it was
    /// written, over one row that has the table's name and columns.
    private func ofNew(_ expression: String) -> String {
        let row = columns.map { SQLName.quoted($0) }.map { "NEW.\($0) AS \($0)" }
            .joined(separator: ", ")
        return "(SELECT \(expression) FROM (SELECT \(row)) AS \(SQLName.quoted(table)))"
    }

    /// Returns the unique indexes of a type's table, in the order of their names.
    /// - Parameter isKey: Whether to return the primary key's own index, or all others. An integer
    ///   key that is the rowid has none.
    fileprivate static func all(
        of type: EntityType, isKey: Bool, _ connection: Connection
    ) throws(SQLiteError) -> [UniqueIndex] {
        let list = try connection.statement(
            """
            SELECT listed.name, object.sql FROM pragma_index_list(?1, 'main') AS listed \
            LEFT JOIN main.sqlite_schema AS object \
            ON object.type = 'index' AND object.name = listed.name \
            WHERE listed."unique" AND (listed.origin = 'pk') = ?2 ORDER BY listed.name
            """)
        list.bind(1, text: type.name)
        list.bind(2, integer: isKey ? 1 : 0)
        let listed = try list.rows { (row) throws(SQLiteError) in
            (name: row.text(0), sql: row.isNull(1) ? nil : row.text(1))
        }
        let columns = [type.key] + type.attributes.map(\.name)
        return try listed.map { (index) throws(SQLiteError) in
            let declared = index.sql.flatMap { CreateStatement($0) }
            return UniqueIndex(
                table: type.name, columns: columns,
                terms: try terms(of: index.name, declared, type, connection),
                condition: declared?.condition)
        }
    }

    private static func terms(
        of index: String, _ declared: CreateStatement?, _ type: EntityType,
        _ connection: Connection
    ) throws(SQLiteError) -> [Term] {
        let find = try connection.statement(
            "SELECT name, coll FROM pragma_index_xinfo(?1, 'main') WHERE key ORDER BY seqno")
        find.bind(1, text: index)
        let listed = try find.rows { (row) throws(SQLiteError) in
            (column: row.isNull(0) ? nil : row.text(0), collation: row.text(1))
        }
        return listed.enumerated().map { position, term in
            let collation = "COLLATE \(SQLName.quoted(term.collation))"
            if let column = term.column {
                let isStored = type[attribute: column].map { !$0.isGenerated } ?? true
                return Term(
                    sql: "\(SQLName.quoted(column)) \(collation)", column: isStored ? column : nil)
            }
            let items = declared?.items ?? []
            let expression = items.indices.contains(position) ? items[position] : "NULL"
            return Term(sql: "(\(expression)) \(collation)", column: nil)
        }
    }
}

/// Finds the rows of a table that a REPLACE removes to make room for another one.
package struct RowConflicts {
    /// The conditions, in the body of a trigger, under which a row of the table has NEW's key by
    /// the comparison of the key's index, or NEW's rowid.
    package let keyConditions: [String]
    /// The name of the rowid in a trigger, if it is not the key; nil if there is none.
    package let rowID: String?
    /// The unique indexes other than the key's.
    package let indexes: [UniqueIndex]

    /// Reads the conflicts from the type's table as it is now.
    package init(_ type: EntityType, _ connection: Connection) throws(SQLiteError) {
        indexes = try UniqueIndex.all(of: type, isKey: false, connection)
        guard type.keyKind == .text else {
            rowID = nil
            let key = SQLName.quoted(type.key)
            keyConditions = ["\(key) = NEW.\(key)"]
            return
        }
        rowID = try Self.rowID(of: type, connection)
        let keys = try UniqueIndex.all(of: type, isKey: true, connection).map(\.isMetByNew)
        keyConditions = keys + (rowID.map { ["\($0) = NEW.\($0)"] } ?? [])
    }

    /// Returns statements, for the body of a BEFORE UPDATE trigger, that refuse an update which would remove a
    /// row to which the updated row refers, if the reference is then to become NULL or its default.
    ///
    /// SQLite changes the reference in the middle of the update: an index of it is broken afterwards ("database
    /// disk image is malformed"), or the reference to the removed row stays. SQLite 3.40.1 does so. A trigger cannot
    /// tell UPDATE OR IGNORE apart, so that is refused as well.
    package func refusals(in type: EntityType) -> [String] {
        let actions: [Reference.Action] = [.setNull, .setDefault]
        let held = type.references.filter {
            $0.target == type.name && actions.contains($0.onDelete)
        }.map { SQLName.quoted($0.attribute) }
        guard !held.isEmpty else { return [] }
        let (table, key) = (SQLName.quoted(type.name), SQLName.quoted(type.key))
        let own = held.map { "OLD.\($0), NEW.\($0)" }.joined(separator: ", ")
        let byBytes = type.keyKind == .text ? " COLLATE BINARY" : ""
        return indexes.map { index in
            """
            SELECT RAISE(ABORT, 'martlet: this update would remove a row to which the updated row refers, which \
            SQLite cannot do; take the unique value from the other row first') FROM \(table) AS martlet_row
                    WHERE (\(index.isMetByNew)) AND \(key) IS NOT OLD.\(key)\(byBytes) AND \(key) IN (\(own));
            """
        }
    }

    /// Returns the first of SQLite's three names of the rowid that no column has
    /// (https://sqlite.org/lang_createtable.html#rowid).
    private static func rowID(
        of type: EntityType, _ connection: Connection
    ) throws(SQLiteError) -> String? {
        let find = try connection.statement(
            "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1")
        find.bind(1, text: type.name)
        guard try find.rows({ (row) throws(SQLiteError) in row.integer(0) }) == [0] else {
            return nil
        }
        let taken = Set(([type.key] + type.attributes.map(\.name)).map { SQLName.folded($0) })
        return ["rowid", "oid", "_rowid_"].first { !taken.contains($0) }
    }
}
