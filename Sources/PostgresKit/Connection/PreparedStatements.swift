/// A statement that the server has prepared.
struct Prepared: Sendable {
    let name: String
    let sql: String
    /// The types of the parameters, as the server determined them.
    let parameters: [UInt32]
}

/// A bounded map of prepared statements by their SQL. It drops the least recently used statement
/// first.
struct PreparedStatements {
    private var statements: [String: (prepared: Prepared, used: UInt64)] = [:]
    private var clock: UInt64 = 0
    private var numbers: UInt64 = 0
    private let capacity: Int
    /// The names of statements that the server still has and that nothing uses.
    private(set) var dropped: [String] = []

    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    var count: Int { statements.count }

    /// Returns a name that no statement of this connection has had.
    mutating func newName() -> String {
        numbers += 1
        return "martlet_\(numbers)"
    }

    mutating func find(_ sql: String) -> Prepared? {
        clock += 1
        guard let index = statements.index(forKey: sql) else { return nil }
        statements.values[index].used = clock
        return statements.values[index].prepared
    }

    mutating func keep(_ prepared: Prepared) {
        clock += 1
        statements[prepared.sql] = (prepared, clock)
    }

    /// Drops the oldest statements beyond the capacity, except those in use.
    mutating func shrink(sparing inUse: Set<String>) {
        while statements.count > capacity {
            let oldest = statements.filter { !inUse.contains($0.key) }
                .min { $0.value.used < $1.value.used }?.key
            guard let oldest else { return }
            drop(oldest)
        }
    }

    mutating func drop(_ sql: String) {
        if let gone = statements.removeValue(forKey: sql) { dropped.append(gone.prepared.name) }
    }

    /// Drops all statements, because the server may have forgotten them. A trigger can also raise
    /// this error, so the server may still have them.
    mutating func dropAll() {
        for sql in Array(statements.keys) { drop(sql) }
    }

    mutating func forgetDropped() {
        dropped.removeAll()
    }
}
