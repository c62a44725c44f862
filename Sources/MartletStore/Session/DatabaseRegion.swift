/// The part of a database that a query reads.
public struct DatabaseRegion: Hashable, Sendable {
    /// The tables that the query reads as a whole, or by conditions.
    var tables: Set<String> = []
    /// The virtual tables among `tables`. SQLite keeps their data in tables named after them
    /// (“name_data” and the like), and reports changes to those.
    var virtualTables: Set<String> = []
    /// The rowids of single rows that the query reads, by table.
    var rows: [String: Set<Int64>] = [:]

    /// The empty region, for a read that nobody observes.
    package static var nothing: DatabaseRegion { DatabaseRegion() }
}
