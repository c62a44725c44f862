package import MartletModel
package import SQLiteKit

/// A unique index of a table, other than the primary key, with the terms by which SQLite compares
/// rows: columns or expressions, each with its collation, and the condition of a partial index.
///
/// Triggers need it, because a REPLACE removes conflicting rows without firing a trigger for them.
package struct UniqueIndex {
    private struct Term {
        /// The column or the expression as SQL, with its collation.
        let sql: String
        /// The column of the term; nil for an expression.
        let column: String?
        /// Whether the table stores the column.
        let isStored: Bool
    }

    /// The columns of the index, if an UPDATE of one of them is the only way for a row to conflict
    /// with another. Nil for an index over expressions or generated columns, and for a partial one.
    package let watchedColumns: [String]?
    /// The condition, in the body of a trigger, that a row of the table shares all values of the
    /// index with NEW. It may hold for NEW's own row.
    package let isMetByNew: String
    /// The columns in which NEW must not have NULL, because the values of the index would then be
    /// unknown.
    fileprivate let unforeseen: Set<String>

    private init(_ terms: [Term], condition: String?, of new: NewRow) {
        let plain = terms.filter(\.isStored).compactMap(\.column)
        watchedColumns = condition == nil && plain.count == terms.count ? plain : nil
        var parts: [String] = []
        var unforeseen: Set<String> = []
        for term in terms {
            let value: String
            if let column = term.column, term.isStored {
                value = new.value(of: column)
                unforeseen.formUnion(new.unforeseen(in: SQLName.quoted(column)))
            } else if let column = term.column {
                value = new.value(ofComputed: column, as: term.sql)
                unforeseen.formUnion(new.unforeseen(inComputed: column))
            } else {
                value = new.value(ofExpression: term.sql)
                unforeseen.formUnion(new.unforeseen(in: term.sql))
            }
            parts.append("\(term.sql) = \(value)")
        }
        if let condition {
            parts += ["(\(condition))", new.value(ofExpression: "(\(condition))")]
            unforeseen.formUnion(new.unforeseen(in: condition))
        }
        isMetByNew = parts.joined(separator: " AND ")
        self.unforeseen = unforeseen
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
        guard !listed.isEmpty else { return [] }
        let new = try NewRow(of: type, connection)
        return try listed.map { (index) throws(SQLiteError) in
            let declared = index.sql.flatMap { CreateStatement($0) }
            return UniqueIndex(
                try terms(of: index.name, declared, type, connection),
                condition: declared?.condition, of: new)
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
                    sql: "\(SQLName.quoted(column)) \(collation)", column: column,
                    isStored: isStored)
            }
            let items = declared?.items ?? []
            let expression = items.indices.contains(position) ? items[position] : "NULL"
            return Term(sql: "(\(expression)) \(collation)", column: nil, isStored: false)
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
    private let keyIndexes: [UniqueIndex]
    private let circle: RemovalCircle?

    /// Reads the conflicts from the type's table as it is now.
    package init(
        _ type: EntityType, _ actions: ReferenceActions, _ connection: Connection
    ) throws(SQLiteError) {
        indexes = try UniqueIndex.all(of: type, isKey: false, connection)
        circle = try actions.circle(of: type.name, connection)
        guard type.keyKind == .text else {
            (rowID, keyIndexes) = (nil, [])
            let key = SQLName.quoted(type.key)
            keyConditions = ["\(key) = NEW.\(key)"]
            return
        }
        rowID = try Self.rowID(of: type, connection)
        keyIndexes = try UniqueIndex.all(of: type, isKey: true, connection)
        let keys = keyIndexes.map(\.isMetByNew)
        keyConditions = keys + (rowID.map { ["\($0) = NEW.\($0)"] } ?? [])
    }

    /// Returns statements, for the body of a BEFORE trigger, that refuse NULL if SQLite may put a
    /// default in its place that is not known in advance. Otherwise the removed rows would not be
    /// known either.
    /// - Parameter withKey: Whether rows are also found by the key.
    package func nullRefusals(withKey: Bool) -> [String] {
        let columns = (indexes + (withKey ? keyIndexes : [])).map(\.unforeseen)
        let unforeseen = Set(columns.joined()).sorted()
        return unforeseen.map { column in
            let told = SQLName.literal(
                """
                martlet: SQLite may put the default in place of NULL here, and nobody knows before which rows that \
                replaces; give a value to the column \(SQLName.quoted(column))
                """)
            return "SELECT RAISE(ABORT, \(told)) WHERE NEW.\(SQLName.quoted(column)) IS NULL;"
        }
    }

    /// Returns statements, for the body of a BEFORE UPDATE trigger, that refuse an update if it
    /// removes a row and the removal returns to a reference of the updated row: see
    /// `ReferenceActions`.
    /// - Parameter withKey: Whether an update may set another key.
    package func refusals(in type: EntityType, withKey: Bool) -> [String] {
        guard let circle else { return [] }
        let key = SQLName.quoted(type.key)
        let byBytes = type.keyKind == .text ? " COLLATE BINARY" : ""
        let conditions = (indexes.map(\.isMetByNew) + (withKey ? keyConditions : [])).map {
            "(\($0)) AND \(key) IS NOT OLD.\(key)\(byBytes)"
        }
        return conditions.isEmpty ? [] : [circle.refusal(of: type, removing: conditions)]
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
