/// Notes what an observed query reads.
package final class RegionRecorder {
    package private(set) var region = DatabaseRegion()

    package init() {}

    func note(_ tables: Set<String>) {
        region.tables.formUnion(tables)
    }

    /// Notes that a single row was read, by its rowid.
    func note(row: Int64, of table: String) {
        region.rows[table, default: []].insert(row)
    }
}
