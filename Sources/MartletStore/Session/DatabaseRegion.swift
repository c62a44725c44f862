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
}
