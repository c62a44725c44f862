import SQLiteFaults
import SQLiteKit
import Testing

/// Numbers that follow from a seed.
struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 29)
    }
}

/// Transactions whose number of successes can be told from the database.
struct Workload {
    let journal: String
    let synchronous: String
    static let transactions: Int64 = 8

    func open(_ disk: FaultDisk) throws -> Connection {
        let connection = try Connection(path: "/data/store.db", vfs: disk.vfsName)
        // The file has a page before its first journal of another mode.
        try connection.execute(
            """
            PRAGMA page_size = 1024; PRAGMA user_version = 1; PRAGMA journal_mode = \(journal);
            PRAGMA synchronous = \(synchronous); PRAGMA wal_autocheckpoint = 12;
            """)
        return connection
    }

    /// Transaction `number`: twenty rows, of which the older ones are changed too.
    func transact(_ number: Int64, _ connection: Connection) throws {
        try connection.transaction {
            try connection.execute(
                """
                CREATE TABLE IF NOT EXISTS done (number INTEGER PRIMARY KEY);
                CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, at INTEGER, body TEXT);
                INSERT INTO done VALUES (\(number));
                UPDATE item SET at = \(number);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
                  INSERT INTO item SELECT \(number) * 100 + i, \(number),
                    printf('%.*c', 40 + i * 7, char(97 + \(number))) FROM n;
                """)
        }
    }

    /// Runs all transactions after these until one fails; returns how many were acknowledged in all.
    func run(_ disk: FaultDisk, after done: Int64 = 0) -> Int64 {
        var acknowledged = done
        do {
            let connection = try open(disk)
            for number in (done + 1)...Self.transactions {
                try transact(number, connection)
                acknowledged = number
            }
        } catch {
            // The disk fails on purpose.
        }
        return acknowledged
    }

    /// How many transactions the database shows; nil when what it shows is of no whole number.
    func state(_ connection: Connection) throws -> Int64? {
        guard try connection.text("PRAGMA integrity_check") == "ok" else { return nil }
        guard try connection.integer("SELECT count(*) FROM sqlite_schema") != 0 else { return 0 }
        let number = try connection.integer("SELECT max(number) FROM done") ?? 0
        let isWhole = try connection.integer(
            """
            SELECT (SELECT count(*) FROM done) = \(number)
              AND (SELECT count(*) FROM item) = 20 * \(number)
              AND NOT EXISTS (SELECT 1 FROM item WHERE at IS NOT \(number)
                OR length(body) <> 40 + (id % 100) * 7
                OR trim(body, char(97 + id / 100)) <> '')
            """)
        return isWhole == 1 ? number : nil
    }

    /// The operations of a run in which nothing fails.
    func operations() -> Int {
        let disk = FaultDisk(name: "count-\(journal)-\(synchronous)")
        #expect(run(disk) == Self.transactions)
        return disk.operationCount
    }
}
