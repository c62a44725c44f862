/// Notes what an observed query reads.
package final class RegionRecorder {
    package private(set) var region = DatabaseRegion()

    package init() {}

    /// Whether a table has not been noted as a whole yet.
    func isNew(_ table: String) -> Bool { !region.tables.contains(table) }

    /// Notes that a table was read as a whole, or by conditions.
    func note(_ table: String, isVirtual: Bool) {
        region.tables.insert(table)
        if isVirtual { region.virtualTables.insert(table) }
    }

    /// Notes that a single row was read, by its rowid.
    func note(row: Int64, of table: String) {
        region.rows[table, default: []].insert(row)
    }
}
