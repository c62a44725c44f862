/// What one operation costs, counted: the same on every machine with the same SQLite and compiler.
struct Counts: Codable, Equatable {
    /// Statements compiled when it is done for the first time.
    var prepared: Int
    /// Steps of SQLite's virtual machine when it is done again.
    var steps: Int
    /// Requests for memory when it is done again; 0 where they are not counted.
    var allocations: Int
    /// Bytes that travel, before compression; nil where none do.
    var bytes: Int?
    /// Requests that travel; nil where none do.
    var requests: Int?

    /// The counts by name, for comparisons.
    var named: [(name: String, value: Int)] {
        [
            ("prepared", prepared), ("steps", steps), ("allocations", allocations),
            ("bytes", bytes ?? 0), ("requests", requests ?? 0),
        ]
    }
}
