/// The part of a database that a query reads.
public struct DatabaseRegion: Hashable, Sendable {
    /// Tables read as a whole, or by conditions.
    var tables: Set<String> = []
    /// Those of them that are virtual: they keep their data in tables named after them
    /// (“name_data” and the like), and those are what is told of.
    var virtualTables: Set<String> = []
    /// Single rows read, by rowid.
    var rows: [String: Set<Int64>] = [:]

    /// No part: of a read that nobody observes.
    package static var nothing: DatabaseRegion { DatabaseRegion() }

    /// Whether a change may show in what the query reads.
    /// - Complexity: O(*t* + *r*), *t* tables and *r* rows of the smaller side.
    func isTouched(by change: DatabaseChange) -> Bool {
        if change.isUnbounded { return true }
        for (name, changed) in change.tables {
            if tables.contains(name) { return true }
            if let watched = rows[name], changed.touches(watched) { return true }
            if virtualTables.contains(where: { name.hasPrefix($0 + "_") }) { return true }
        }
        return false
    }
}
