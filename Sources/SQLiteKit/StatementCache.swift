/// A bounded map of prepared statements by their SQL. It evicts the least recently used statement
/// first.
struct StatementCache {
    private var statements: [String: (statement: Statement, used: UInt64)] = [:]
    private var clock: UInt64 = 0
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    subscript(sql: String) -> Statement? {
        mutating get {
            clock += 1
            guard let index = statements.index(forKey: sql) else { return nil }
            statements.values[index].used = clock
            return statements.values[index].statement
        }
        set {
            clock += 1
            guard let newValue else {
                statements[sql] = nil
                return
            }
            if statements.count >= capacity, statements[sql] == nil {
                evictOldest()
            }
            statements[sql] = (newValue, clock)
        }
    }

    mutating func removeAll() {
        statements.removeAll()
    }

    private mutating func evictOldest() {
        if let oldest = statements.min(by: { $0.value.used < $1.value.used })?.key {
            statements[oldest] = nil
        }
    }
}
