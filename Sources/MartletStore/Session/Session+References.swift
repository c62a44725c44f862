internal import SQLiteKit
internal import SQLiteRecords

/// Finds the references that a refused write violates, because SQLite does not name them.
extension Session {
    /// A foreign key of a table: columns that refer to columns of a parent.
    private struct Key {
        let child: String
        let parent: String
        var from: [String] = []
        /// The parent's columns; empty if the reference is to the parent's key.
        var to: [String] = []
    }

    /// Returns the violated references as “table.column”: a reference of the row to a missing
    /// parent, or else a child's reference to the row. Returns an empty list if none is found.
    func violatedReferences(_ write: RowWrite) -> [String] {
        (try? references(write)) ?? []
    }

    private func references(_ write: RowWrite) throws -> [String] {
        if let values = write.values {
            for key in try keys(of: write.table) {
                let given = key.from.compactMap { values[$0] }
                guard given.count == key.from.count, !given.contains(.null) else { continue }
                let to = key.to.isEmpty ? try description(of: key.parent).key : key.to
                if try !isThere(key.parent, to, given) { return Self.names(key) }
            }
        }
        // Otherwise a child refers to the row as it was.
        let parent = try description(of: write.table)
        guard let id = write.key, parent.key.count == 1 else { return [] }
        for child in try tables() {
            for key in try keys(of: child) where key.from.count == 1 {
                guard SQLName.folded(key.parent) == SQLName.folded(parent.name),
                    key.to.isEmpty || key.to == parent.key
                else { continue }
                if try isThere(child, key.from, [SQLValue(id)]) { return Self.names(key) }
            }
        }
        return []
    }

    /// Returns the references that have no parent row at the end of a transaction.
    func danglingReferences() -> [String] {
        var found: [String] = []
        let check = try? connection.statement("PRAGMA foreign_key_check").rows {
            (row) throws(SQLiteError) in (row.text(0), Int(row.integer(3)))
        }
        for (table, number) in check ?? [] {
            guard let keys = try? keys(of: table), keys.indices.contains(number) else { continue }
            for name in Self.names(keys[number]) where !found.contains(name) { found.append(name) }
        }
        return found
    }

    private static func names(_ key: Key) -> [String] {
        key.from.map { "\(key.child).\($0)" }
    }

    private func tables() throws -> [String] {
        try connection.statement(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        ).rows { (row) throws(SQLiteError) in row.text(0) }
    }

    /// Returns a table's foreign keys. A key's position is SQLite's number for it.
    private func keys(of table: String) throws -> [Key] {
        let list = try connection.statement(
            """
            SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq
            """)
        list.bind(1, text: table)
        var keys: [Key] = []
        _ = try list.rows { (row) throws(SQLiteError) in
            if Int(row.integer(0)) == keys.count {
                keys.append(Key(child: table, parent: row.text(1)))
            }
            guard let last = keys.indices.last else { return }
            keys[last].from.append(row.text(2))
            if !row.isNull(3) { keys[last].to.append(row.text(3)) }
        }
        return keys
    }

    private func isThere(_ table: String, _ columns: [String], _ values: [SQLValue]) throws -> Bool
    {
        let condition = columns.map { "\(SQLName.quoted($0)) = ?" }.joined(separator: " AND ")
        var isThere = false
        try forEachRow(
            "SELECT 1 FROM \(SQLName.quoted(table)) WHERE \(condition) LIMIT 1", values
        ) { _ in isThere = true }
        return isThere
    }
}
