internal import SQLiteKit
internal import SQLiteRecords

/// Removes bytes of removed records from full-text indexes, R*Trees and the samples of ANALYZE, in which
/// SQLite leaves them.
extension DeviceStore {
    /// The pages or nodes that one step may write to an index.
    private static let pagesOfStep = 64

    /// The modules of virtual tables whose bytes `cleanIndexes` removes, or that store nothing.
    private static let knownModules: Set<String> = [
        "fts3", "fts4", "fts5", "fts4aux", "fts5vocab", "rtree", "rtree_i32", "geopoly",
    ]

    /// Returns why removed records may still be in the file if a trigger writes to a virtual table whose module
    /// the device does not know; nil if there is no such table.
    func unknownTable() throws -> String? {
        let connection = applying.connection
        let tables = try virtualTables().filter { !Self.knownModules.contains($0.module) }
        guard !tables.isEmpty else { return nil }
        let triggers = try connection.statement(
            "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger'"
        ).rows { (row) throws(SQLiteError) in row.text(0) }
        let written = Set(
            triggers.flatMap { TriggerDeclaration($0)?.written ?? [] }.map(SQLName.folded))
        guard let table = tables.first(where: { written.contains(SQLName.folded($0.name)) }) else {
            return nil
        }
        return
            "triggers write to the table “\(table.name)” of the module “\(table.module)”, and the device does not"
            + " know how to remove records from its bytes; drop the table and the triggers (you can make them again"
            + " after the next exchange)"
    }

    /// Removes what indexes keep of deleted rows, by one step.
    ///
    /// Segments of full-text indexes are merged, which leaves out the words of deleted rows
    /// (https://sqlite.org/fts5.html#the_merge_command,
    /// https://sqlite.org/fts3.html#fts4_optimize_command).
    /// - Parameter failing: The sentence about the index at which it is, if it cannot be cleaned.
    /// - Returns: Whether nothing is left in them.
    func cleanIndexes(_ failing: inout String?) throws -> Bool {
        let connection = applying.connection
        let (newer, older) = try (textIndexes(of: ["fts5"]), textIndexes(of: ["fts3", "fts4"]))
        let trees = try virtualTables().filter { Self.treeModules.contains($0.module) }
        return try inApplyingTransaction {
            for name in newer {
                failing = "the full-text index “\(name)” cannot be merged"
                let table = SQLName.quoted(name)
                let before = try connection.integer("SELECT total_changes()") ?? 0
                try connection.execute(
                    """
                    INSERT INTO \(table)(\(table), rank) VALUES ('merge', -\(Self.pagesOfStep))
                    """)
                let after = try connection.integer("SELECT total_changes()") ?? 0
                if after - before >= 2 { return false }
            }
            for name in older {
                failing = "the full-text index “\(name)” cannot be merged"
                let table = SQLName.quoted(name)
                try connection.execute("INSERT INTO \(table)(\(table)) VALUES ('optimize')")
            }
            for tree in trees {
                failing = "bytes of the R*Tree “\(tree.name)” cannot be overwritten"
                guard try overwriteNodes(of: tree) else { return false }
            }
            try deleteSamples()
            let before = try standing
            var after = before
            if after.tracesFrom == 0 { after.tracesFrom = 1 }
            try after.write(to: applying, over: before)
            return true
        }
    }

    // MARK: - R*Trees

    private static let treeModules: Set<String> = ["rtree", "rtree_i32", "geopoly"]

    /// Overwrites the bytes of removed cells in some nodes of an R*Tree, in the caller's transaction.
    ///
    /// A node begins with four bytes, and the last two of them are the number of its cells. The cells and unused
    /// bytes follow.
    /// A cell has eight bytes, and eight for each dimension (https://sqlite.org/src/file/ext/rtree/rtree.c). When
    /// a cell is removed, the R*Tree leaves a copy of the last one behind the others.
    /// - Returns: Whether no other node has such bytes.
    private func overwriteNodes(of tree: VirtualTable) throws -> Bool {
        let connection = applying.connection
        let cellBytes = try 8 + 8 * dimensions(of: tree)
        let nodes = "main.\(SQLName.quoted(tree.name + "_node"))"
        var changed: [(number: Int64, bytes: [UInt8])] = []
        let rows = try connection.prepare("SELECT nodeno, data FROM \(nodes)")
        while changed.count < Self.pagesOfStep, try rows.step() {
            var bytes = rows.blob(1)
            guard bytes.count >= 4 else { throw SQLiteError.mismatch("a node is damaged") }
            let start = 4 + cellBytes * (Int(bytes[2]) << 8 | Int(bytes[3]))
            guard start <= bytes.count else { throw SQLiteError.mismatch("a node is damaged") }
            let unused = start..<bytes.count
            guard bytes[unused].contains(where: { $0 != 0 }) else { continue }
            bytes.replaceSubrange(unused, with: repeatElement(0, count: unused.count))
            changed.append((rows.integer(0), bytes))
        }
        rows.reset()
        let write = try connection.prepare("UPDATE \(nodes) SET data = ? WHERE nodeno = ?")
        for node in changed {
            write.bind(1, blob: node.bytes)
            write.bind(2, integer: node.number)
            try write.run()
        }
        return changed.count < Self.pagesOfStep
    }

    /// Returns the number of dimensions of an R*Tree. Its columns are the key, two for each dimension, and others,
    /// which its table of rows has, too.
    private func dimensions(of tree: VirtualTable) throws -> Int {
        guard tree.module != "geopoly" else { return 2 }
        let find = try applying.connection.statement(
            """
            SELECT (SELECT count(*) FROM pragma_table_info(?1, 'main'))
                - (SELECT count(*) FROM pragma_table_info(?1 || '_rowid', 'main'))
            """)
        defer { find.reset() }
        find.bind(1, text: tree.name)
        let count = try find.step() ? Int(find.integer(0)) + 1 : 0
        guard (2...10).contains(count), count.isMultiple(of: 2) else {
            throw SQLiteError.mismatch("its columns cannot be read")
        }
        return count / 2
    }

    // MARK: - Samples

    /// Deletes the values of rows that ANALYZE has noted (https://sqlite.org/fileformat2.html#the_sqlite_stat4_table),
    /// in the caller's transaction. They only help to plan queries, and ANALYZE notes them again.
    private func deleteSamples() throws {
        let tables = try applying.connection.statement(
            """
            SELECT name FROM main.sqlite_schema
            WHERE type = 'table' AND name IN ('sqlite_stat2', 'sqlite_stat3', 'sqlite_stat4')
            """
        ).rows { (row) throws(SQLiteError) in row.text(0) }
        for table in tables { try applying.connection.execute("DELETE FROM main.\(table)") }
    }
}
