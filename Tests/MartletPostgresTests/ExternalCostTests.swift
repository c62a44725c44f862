import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("What it costs to take what other programs wrote")
struct ExternalCostTests {
    private static let count = 2_000

    /// Makes a data set with a table `words` whose rows another program has written, and looked at once.
    private static func on(
        _ key: String, _ body: @escaping @Sendable (TestStore, PostgresConnection) throws -> Void
    ) async throws {
        let script = "CREATE TABLE words (id \(key) PRIMARY KEY, note text);"
        try await StoreTests.on(script, ["words"]) { (store: TestStore) throws in
            for table in try PostgresSchema.read(store.other).tables {
                try ExternalTriggers.install(on: store.other, table: table)
            }
            try store.other.execute(
                "INSERT INTO words SELECT 'k' || n, 'a' FROM generate_series(1, \(count)) AS n")
            try body(store, try PostgresConnection(store.address))
        }
    }

    /// Takes what is pending once.
    /// - Returns: How many records the entries have, and how many rows were read: table by table, and
    ///   through indexes.
    private static func take(
        _ store: TestStore, _ connection: PostgresConnection, _ extent: ExternalDrain.Extent
    ) throws -> (records: [Int], whole: Int64, indexed: Int64) {
        let found = try PostgresSchema.read(store.other)
        let drain = ExternalDrain(
            schema: found.schema, tables: found.tables, unsendable: UnsendableRows(),
            extent: extent)
        let row = try connection.query("SELECT revision, hash FROM _martlet.dataset")
        let head = LogHead(
            revision: try row.integer(0, 0), hash: LineageHash(stored: try row.binary(0, 1)))
        return try connection.transaction {
            let entries = try drain.entries(
                on: connection, head: head, now: 1, maxBytes: 1 << 20)
            let read = try connection.query(
                """
                SELECT coalesce(sum(seq_tup_read), 0)::bigint, \
                coalesce(sum(idx_tup_fetch), 0)::bigint FROM pg_stat_xact_user_tables
                """)
            let records = try entries.map { try SyncCoder.decodeChangeSet($0.body).recordCount }
            return (records, try read.integer(0, 0), try read.integer(0, 1))
        }
    }

    /// All at once, with a cursor, and in parts.
    private static let extents = [
        ExternalDrain.Extent(few: 10_000), .init(few: 0, time: .seconds(3_600)),
        .init(few: 0, many: 0, time: .seconds(3_600)),
    ]

    @Test(
        "no table is read whole, whatever the key's collation is and statistics are lacking",
        arguments: ["text", "varchar(20)", "text COLLATE \"C\"", "text COLLATE \"POSIX\""],
        extents.indices)
    func linearExternalCost(key: String, extent: Int) async throws {
        try await Self.on(key) { (store, connection) throws in
            let first = try Self.take(store, connection, Self.extents[extent])
            #expect(first.records.reduce(0, +) == Self.count)
            #expect(first.whole < 10 && first.indexed < 20 * Int64(Self.count), "\(first)")
            // The tables have rows now, and nobody has counted them.
            try store.other.execute("UPDATE words SET note = 'b'")
            let second = try Self.take(store, connection, Self.extents[extent])
            #expect(second.records.reduce(0, +) == Self.count)
            #expect(second.whole < 10 && second.indexed < 20 * Int64(Self.count), "\(second)")
        }
    }

    @Test("when the time is over, one page has been taken, and the rest stays noted")
    func time() async throws {
        try await Self.on("text") { (store, connection) throws in
            let extent = ExternalDrain.Extent(few: 0, time: .zero)
            for _ in 1...(Self.count / extent.page) {
                let part = try Self.take(store, connection, extent)
                #expect(part.records == [extent.page])
            }
            _ = try Self.take(store, connection, extent)
            let rest = try connection.query("SELECT \(ExternalDrain.isPending)")
            #expect(try !rest.boolean(0, 0))
        }
    }
}
