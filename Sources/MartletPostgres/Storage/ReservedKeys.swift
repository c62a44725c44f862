import MartletModel
import PostgresKit

/// Keys that PostgreSQL gave out for records to come. Those of sets that were refused are used for
/// later ones: nobody has seen them.
struct ReservedKeys {
    private var free: [[Int64]]

    /// - Parameter count: Of the types.
    init(count: Int) {
        free = Array(repeating: [], count: count)
    }

    /// How many more of a type are needed before `count` can be taken.
    func lacking(_ count: Int, of type: Int) -> Int {
        max(0, count - free[type].count)
    }

    mutating func add(_ keys: [Int64], of type: Int) {
        free[type] += keys
    }

    /// The next key; nil where there is none.
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
    /// Draws keys never given before.
    /// - Parameter untaken: Whether those that a record has all the same are left out: other
    ///   programs may have written keys of their own choice.
    /// - Returns: A statement with a key in each row; nil where devices make the keys.
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
