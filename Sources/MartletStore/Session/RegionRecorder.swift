/// Records the tables and rows that an observed query reads.
package final class RegionRecorder {
    package private(set) var region = DatabaseRegion()

    package init() {}

    /// Returns whether the table is not yet recorded as a whole.
    func isNew(_ table: String) -> Bool { !region.tables.contains(table) }

    /// Records that the query reads a table as a whole, or by conditions.
    func note(_ table: String, isVirtual: Bool) {
        region.tables.insert(table)
        if isVirtual { region.virtualTables.insert(table) }
    }

    /// Records that the query reads a single row, by its rowid.
    func note(row: Int64, of table: String) {
        region.rows[table, default: []].insert(row)
    }
}
