import MartletModel
import PostgresKit

/// Keys that PostgreSQL gave out for future records. If a set is refused, later sets use its keys,
/// because no device has seen them.
struct ReservedKeys {
    private var free: [[Int64]]

    /// Begins without keys.
    /// - Parameter count: The number of types.
    init(count: Int) {
        free = Array(repeating: [], count: count)
    }

    /// Returns how many keys of a type are missing before `count` can be taken.
    func lacking(_ count: Int, of type: Int) -> Int {
        max(0, count - free[type].count)
    }

    mutating func add(_ keys: [Int64], of type: Int) {
        free[type] += keys
    }

    /// Takes the next key; nil if there is none.
    mutating func take(of type: Int) -> Int64? {
        free[type].isEmpty ? nil : free[type].removeFirst()
    }

    mutating func giveBack(_ keys: [Int64], of type: Int) {
        free[type] = (keys + free[type]).sorted()
    }

    mutating func drop(of type: Int) {
        free[type] = []
    }
}

extension TableFormat {
    /// Returns a statement that draws keys that were never given out.
    /// - Parameter untaken: Whether to leave out keys that a record already has, because other
    ///   programs may write keys of their own choice.
    /// - Returns: A statement with a key in each row; nil if devices make the keys.
    func drawing(_ count: Int, untaken: Bool) -> PostgresStatement? {
        guard let next = table.nextKey else { return nil }
        let drawn = "SELECT (\(next))::bigint AS k FROM generate_series(1, $1::bigint)"
        let sql =
            untaken
            ? """
            SELECT d.k FROM (\(drawn) OFFSET 0) AS d \
            WHERE NOT EXISTS (SELECT FROM \(table.sqlName) AS t WHERE t.\(key) = d.k)
            """ : drawn
        return PostgresStatement(sql, [.integer(Int64(count))])
    }
}
