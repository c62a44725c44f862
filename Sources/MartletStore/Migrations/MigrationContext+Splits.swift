internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

extension MigrationContext {
    /// The number of keys that one query looks at.
    private static let keysAtATime = 1_000

    /// Moves each record of a table that is split by the remainder of its key to its part among the
    /// present parts. To let such a split grow, list the old parts and then the new ones.
    ///
    /// ```swift
    /// Migration(3, "eight parts") { try $0.spread(people) }
    /// ```
    ///
    /// It makes new parts that have a declaration, and moves only records that are in the wrong
    /// part. In a synchronised file it is refused, because each device would move the same records.
    /// - Parameters:
    ///   - table: The table with its new parts.
    ///   - former: Tables that are no longer parts; they are left empty.
    /// - Returns: The number of records moved.
    /// - Throws: `StoreError`: `.misuse` for another kind of split and for a synchronised file,
    ///   `.constraint` if two parts have a record with the same key or other records refer to one
    ///   that moves, `.schema` if the parts do not fit together.
    @discardableResult
    public func spread<Element>(
        _ table: SplitTable<Element>, from former: [any Table] = []
    ) throws -> Int {
        try checkOpen()
        guard case .modulo = table.rule else {
            throw StoreError(
                .misuse,
                "“\(table.name)” is not split by the remainder of its key, so its records stay where"
                    + " they are.")
        }
        guard host == nil else {
            throw StoreError(
                .misuse,
                "“\(table.name)” is synchronised, and every device would move its records. Move them"
                    + " in the server's database, and add the parts here in the same version.")
        }
        let description = try parts(of: table)
        try willUseRecords(writing: true)
        let columns = SQLName.list(
            description.columns.filter { !$0.isGenerated }.map(\.name))
        var moved = 0
        let sources = table.parts.map(\.tableName) + former.map(\.tableName)
        for (index, source) in sources.enumerated() {
            moved += try move(table, out: source, partIndex: index, columns: columns)
        }
        return moved
    }

    /// Makes the missing parts.
    /// - Returns: The columns that the parts have in common.
    private func parts<Element>(of table: SplitTable<Element>) throws -> TableDescription {
        var made = 0
        while true {
            do {
                return try table.source.description(table.name, session)
            } catch let missing as MissingTable where made < table.parts.count {
                made += 1
                try create(missing.declaration)
            }
        }
    }

    /// Moves the records of one table that belong in another part.
    /// - Parameter partIndex: The table's index among the parts; for a former part, the number of parts
    ///   or more.
    private func move<Element>(
        _ table: SplitTable<Element>, out source: String, partIndex: Int, columns: String
    ) throws -> Int {
        let key = SQLName.quoted(table.key)
        let name = SQLName.quoted(source)
        var last: SQLValue?
        var moved = 0
        while true {
            let condition = last == nil ? "" : "WHERE \(key) > ? "
            var keys: [SQLValue] = []
            try session.forEachRow(
                "SELECT \(key) FROM \(name) \(condition)ORDER BY \(key) LIMIT \(Self.keysAtATime)",
                last.map { [$0] } ?? []
            ) { keys.append(try $0.value(at: 0)) }
            for value in keys {
                guard let wanted = table.partIndex(of: value), wanted != partIndex else { continue }
                let target = SQLName.quoted(table.parts[wanted].tableName)
                try session.forEachRow(
                    """
                    INSERT OR ABORT INTO \(target)(\(columns))
                    SELECT \(columns) FROM \(name) WHERE \(key) = ?
                    """, [value]
                ) { _ in }
                try session.forEachRow("DELETE FROM \(name) WHERE \(key) = ?", [value]) { _ in }
                moved += 1
            }
            guard keys.count == Self.keysAtATime, let end = keys.last else { return moved }
            last = end
        }
    }
}
