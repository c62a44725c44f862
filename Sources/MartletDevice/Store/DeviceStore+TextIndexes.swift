internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The app's full-text indexes in the device's file.
extension DeviceStore {
    /// A virtual table of the file.
    struct VirtualTable {
        let name: String
        /// The module to which it belongs, in small letters.
        let module: String
    }

    /// Returns the virtual tables of the file.
    func virtualTables() throws -> [VirtualTable] {
        try applying.connection.statement(
            "SELECT name, sql FROM main.sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
        ).rows { (row) throws(SQLiteError) in
            VirtualTable(name: row.text(0), module: Self.module(row.text(1)))
        }
    }

    /// Returns the names of virtual tables.
    /// - Parameter modules: The modules to which they belong, in small letters.
    func textIndexes(of modules: Set<String>) throws -> [String] {
        try virtualTables().filter { modules.contains($0.module) }.map(\.name)
    }

    /// Returns the module of a virtual table by its declaration, in small letters.
    private static func module(_ declaration: String) -> String {
        let match = declaration.lowercased().firstMatch(of: #/\susing\s+["'`\[]?(\w+)/#)
        return match.map { String($0.1) } ?? ""
    }

    /// Runs `body`, a transaction that applies remote change.
    ///
    /// If the app made an index over a table and never built it, SQLite cannot remove a row's words from
    /// it, and refuses each change of the row. Then the incomplete indexes are rebuilt, and `body` runs
    /// once more.
    /// - Throws: `SyncError` `.file`, which names the index, if that does not help. The device's status then
    ///   says so, until remote change is applied. Errors of `body`.
    func mendingIndexes<Result>(_ body: () throws -> Result) throws -> Result {
        do throws {
            let result = try tryingAgain(body)
            if try applying.textState("applyFault") != nil {
                try changeStanding { $0.applyFault = nil }
            }
            return result
        } catch let error as SyncError where error.kind == .file {
            try changeStanding { $0.applyFault = error.message }
            throw error
        }
    }

    /// The reason why the device's tables refuse other devices' changes; nil if they took the last ones.
    package var unappliedReason: String? {
        get throws { try standing.applyFault }
    }

    private func tryingAgain<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as SQLiteError where error.isCorruptVirtualTable {
            let indexes = try textIndexes(of: ["fts5"])
            let mended = try inApplyingTransaction { try indexes.filter(mend) }
            do {
                return try body()
            } catch let error as SQLiteError where error.isCorruptVirtualTable {
                guard !indexes.isEmpty else { throw error }
                let names = (mended.isEmpty ? indexes : mended).map { "“\($0)”" }
                throw SyncError(
                    .file,
                    "A full-text index refuses other devices' changes, also when it is complete:"
                        + " \(names.joined(separator: " or ")). Correct the triggers that keep it, or"
                        + " drop it and them.")
            }
        }
    }

    /// Runs `body` in a transaction, as `mendingIndexes` does. It may run twice.
    func inMendingTransaction<Result>(_ body: () throws -> Result) throws -> Result {
        try mendingIndexes { try inApplyingTransaction(body) }
    }

    /// Rebuilds an index if it does not have the words of its table.
    /// - Returns: Whether it was rebuilt.
    private func mend(_ index: String) throws -> Bool {
        let table = SQLName.quoted(index)
        guard try !isComplete(table) else { return false }
        do {
            try applying.connection.execute("INSERT INTO \(table)(\(table)) VALUES ('rebuild')")
        } catch {
            guard error.isStatementError || error.isCorrupt else { throw error }
            throw SyncError(
                .file,
                "The full-text index “\(index)” is damaged and cannot be rebuilt: \(error.message)."
                    + " Drop it and its triggers, or make it again.")
        }
        return true
    }

    private func isComplete(_ table: String) throws(SQLiteError) -> Bool {
        do {
            try applying.connection.execute(
                "INSERT INTO \(table)(\(table), rank) VALUES ('integrity-check', 1)")
        } catch {
            // Any other fault of the statement means that its table or a column is gone. Then it cannot
            // be rebuilt either.
            guard error.isCorruptVirtualTable || error.isStatementError else { throw error }
            return !error.isCorruptVirtualTable
        }
        return true
    }
}
