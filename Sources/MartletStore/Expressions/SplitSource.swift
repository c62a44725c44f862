internal import SQLiteRecords

/// Several tables that a query reads as one.
struct SplitSource: Hashable, Sendable {
    enum Layout: Hashable, Sendable {
        /// Each table has some columns of the records. The first has the key of every record.
        case columns
        /// Each table has all columns of some records.
        case rows
    }

    struct Part: Hashable, Sendable {
        let table: String
        let declaration: String?
    }

    let layout: Layout
    let key: String
    let parts: [Part]

    /// The SQL that reads the tables as one.
    var fragment: SQLFragment {
        let names = parts.map { SQLName.quoted($0.table) }
        return switch layout {
        case .columns:
            SQLFragment(
                sql: "SELECT * FROM \(names[0])"
                    + names.dropFirst().map { " LEFT JOIN \($0) USING (\(SQLName.quoted(key)))" }
                    .joined())
        case .rows:
            SQLFragment(sql: names.map { "SELECT * FROM \($0)" }.joined(separator: " UNION ALL "))
        }
    }

    /// Returns one description for all tables together.
    /// - Throws: `StoreError` `.schema` if the tables do not fit together, `.unknown` if there is
    ///   no such table; `MissingTable` if the database can create it.
    func description(_ name: String, _ session: Session) throws -> TableDescription {
        let all = try parts.map {
            try session.tableStatements($0.table, declaration: $0.declaration).description
        }
        for table in all where table.key != [key] {
            throw StoreError(
                .schema,
                "“\(table.name)” is a part of “\(name)”, whose key is “\(key)”; declare that column"
                    + " its PRIMARY KEY.")
        }
        var columns = all[0].columns
        for table in all.dropFirst() {
            switch layout {
            case .columns: columns += table.columns.filter { $0.name != key }
            case .rows:
                guard table.columns.map(\.name) == columns.map(\.name) else {
                    throw StoreError(
                        .schema,
                        "“\(table.name)” and “\(all[0].name)” are parts of “\(name)” and must have"
                            + " the same columns in the same order.")
                }
            }
        }
        guard Set(columns.map(\.name)).count == columns.count else {
            throw StoreError(
                .schema,
                "A column stands in two of the tables that make up “\(name)”; each but the key"
                    + " belongs to one.")
        }
        return TableDescription(
            name: all[0].name, columns: columns, key: [key], rowIDColumn: nil, hasRowID: false,
            isVirtual: false, indexes: [], mayReplaceRows: false)
    }
}
