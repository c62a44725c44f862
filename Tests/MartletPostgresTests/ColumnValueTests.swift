import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("Values that ALTER TABLE changes")
struct ColumnValueTests {
    private static let script = """
        CREATE TABLE teams (id bigserial PRIMARY KEY, name text, n integer);
        INSERT INTO teams (name, n) VALUES ('a', 1), ('b', 2), ('c', NULL);
        """

    /// Adopts the table and takes it up as a server does.
    private static func adopted(
        _ body: @escaping @Sendable (PostgresConnection) throws -> Void
    ) async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(script)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "club", tables: ["teams"]))
            _ = try PostgresSchema.refresh(connection, now: 2)
            try body(connection)
        }
    }

    /// Returns the values of a column on a device that follows the log.
    private static func replica(
        _ connection: PostgresConnection, _ column: String
    ) throws -> [RecordID: Value] {
        var values: [RecordID: Value] = [:]
        let log = try connection.query("SELECT body FROM _martlet.log ORDER BY revision")
        for row in 0..<log.count {
            for changes in try SyncCoder.decodeChangeSet(log.binary(row, 0)).types {
                for entry in changes.entries {
                    guard let value = entry.attributes[column] else { continue }
                    values[entry.id] = value == .null ? nil : value
                }
            }
        }
        return values
    }

    private static func truth(
        _ connection: PostgresConnection, _ column: String
    ) throws -> [RecordID: Value] {
        let schema = try PostgresSchema.read(connection)
        var values: [RecordID: Value] = [:]
        try TableRows(schema.tables[0], on: connection).forEach(unsendable: { throw $1 }) {
            id, row in
            if let value = row[column], value != .null { values[id] = value }
        }
        return values
    }

    @Test(
        "they are announced, the rows keep their revisions, and the comparison is content",
        arguments: [
            "ALTER COLUMN n TYPE integer USING n * 100", "ALTER COLUMN n TYPE bigint USING n * 100",
            "ALTER COLUMN n TYPE text USING 'x' || n", "ALTER COLUMN n TYPE integer USING NULL",
            "DROP COLUMN n, ADD COLUMN n integer DEFAULT 777",
            "DROP COLUMN n, ADD COLUMN n integer",
        ])
    func announcedColumnValues(change: String) async throws {
        try await Self.adopted { connection in
            let before = try Self.truth(connection, "n")
            let state = try TableState.read(connection)
            try connection.execute("ALTER TABLE teams \(change)")
            #expect(try TableState.read(connection) != state)
            let schema = try PostgresSchema.refresh(connection, now: 3)
            #expect(schema.notes.contains { $0.contains("“n” of table “teams” was altered") })
            let truth = try Self.truth(connection, "n")
            #expect(truth != before)
            #expect(try Self.replica(connection, "n") == truth)
            #expect(try connection.count("_martlet.records WHERE revision = 1") == 3)
            #expect(try connection.count("_martlet.announced") == 3)
            #expect(try PostgresComparison(on: connection, schema).find(.newer).isEmpty)
            let revision = try connection.query("SELECT revision FROM _martlet.dataset")
            #expect(try PostgresSchema.refresh(connection, now: 4).notes == [])
            #expect(
                try connection.query("SELECT revision FROM _martlet.dataset").integer(0, 0)
                    == revision.integer(0, 0))
        }
    }

    @Test(
        "what changes no value is no news",
        arguments: [
            "ALTER TABLE teams ALTER COLUMN n SET DEFAULT 5", "VACUUM FULL teams",
            "ALTER TABLE teams ALTER COLUMN name SET STATISTICS 10",
        ])
    func silentUpdate(statement: String) async throws {
        try await Self.adopted { connection in
            try connection.execute(statement)
            #expect(try PostgresSchema.refresh(connection, now: 3).notes == [])
            #expect(try connection.count("_martlet.log") == 1)
        }
    }

    @Test("text keys that differ only in how letters are composed keep their own revisions")
    func composed() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE tags (id varchar(20) PRIMARY KEY, body text);
                INSERT INTO tags VALUES (U&'x\\00e9', 'a'), (U&'xe\\0301', 'b');
                """)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "club", tables: ["tags"]))
            _ = try PostgresSchema.refresh(connection, now: 2)
            try connection.execute(
                """
                UPDATE _martlet.records SET revision = 9 WHERE id = U&'x\\00e9';
                ALTER TABLE tags ADD COLUMN size integer DEFAULT 11;
                """)
            _ = try PostgresSchema.refresh(connection, now: 3)
            let log = try connection.query(
                "SELECT body FROM _martlet.log ORDER BY revision DESC LIMIT 1")
            let set = try SyncCoder.decodeChangeSet(log.binary(0, 0))
            var revisions: [RecordID: Revision?] = [:]
            for entry in set.types[0].entries { revisions[entry.id] = entry.revision }
            #expect(revisions == [.text("x\u{e9}"): 9, .text("xe\u{301}"): 1])
        }
    }

    @Test("other keys are other records")
    func keysChanged() async throws {
        try await Self.adopted { connection in
            // PostgreSQL does not alter the type of a key that triggers name, so this needs logical
            // decoding.
            let table = try PostgresSchema.read(connection).tables[0]
            try ExternalTriggers.remove(on: connection, table: table)
            try connection.execute("ALTER TABLE teams ALTER COLUMN id TYPE bigint USING id + 10")
            _ = try PostgresSchema.refresh(connection, now: 3)
            let ids = try connection.query(
                "SELECT string_agg(id, ' ' ORDER BY number) FROM _martlet.foreign_changes")
            #expect(try ids.text(0, 0) == "11 12 13 3 2 1")
            #expect(try connection.count("_martlet.foreign_transactions") == 1)
        }
    }

    @Test("a table that was dropped and made again can be adopted, and devices follow")
    func replacedTable() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(Self.script)
            let adoption = PostgresAdoption(on: connection, now: 1)
            _ = try adoption.adopt(.init(name: "club", tables: ["teams"]))
            try connection.execute(
                """
                DROP TABLE teams;
                CREATE TABLE teams (id bigserial PRIMARY KEY, name text, size integer);
                INSERT INTO teams (id, name, size) VALUES (2, 'B', 11), (9, 'new', NULL)
                """)
            #expect(try PostgresSchema.refresh(connection, now: 2).tables.isEmpty)
            _ = try adoption.adopt(.init(name: "club", tables: ["teams"]))
            #expect(try connection.count("_martlet.types") == 1)
            let schema = try PostgresSchema.read(connection)
            #expect(try ExternalTriggers.verify(on: connection, table: schema.tables[0]) == [])
        }
        try await TestDatabase.blocking {
            let store = try TestStore(database.address)
            let entries = try store.store.begin(now: 3, maxBytes: 1 << 20)
            try store.store.commit()
            let changes = try entries.flatMap { try SyncCoder.decodeChangeSet($0.body).types }
            #expect(changes.map(\.create) == [[.integer(9)]])
            #expect(changes.map(\.update) == [[.integer(2)]])
            #expect(changes.first?.delete.sorted() == [.integer(1), .integer(3)])
            #expect(changes.first?.entries.first { $0.id == .integer(2) }?.attributes["size"] == 11)
            #expect(try PostgresComparison.run(on: store.other, repairs: false).isEmpty)
            let edit = TestStore.set("teams", update: ["9"], #""9":{"revision":2,"name":"x"}"#)
            #expect(try store.send(edit).fate == "accepted 3")
            store.store.close()
        }
    }

    @Test("rows that a plain dump brought along count as the log says, and later ones do not")
    func copied() async throws {
        try await Self.adopted { connection in
            func write(_ name: String) throws {
                try connection.execute(
                    """
                    BEGIN; ALTER TABLE teams DISABLE TRIGGER USER;
                    UPDATE teams SET name = '\(name)'; ALTER TABLE teams ENABLE TRIGGER USER; COMMIT
                    """)
            }
            // pg_restore leaves rows with later transactions than the log's.
            try write("restored")
            #expect(try PostgresComparison.run(on: connection, repairs: false).changed == 3)
            // Open transactions of other tests hold back the number that the comparison goes by.
            var isEqual = false
            for _ in 1...300 where !isEqual {
                try connection.execute("UPDATE _martlet.dataset SET home = '1/1'")
                isEqual = try PostgresComparison.run(on: connection, repairs: false).isEmpty
            }
            #expect(isEqual)
            #expect(try PostgresSchema.refresh(connection, now: 5).notes == [])
            #expect(try connection.count("_martlet.log") == 1)
            try write("later")
            #expect(try PostgresComparison.run(on: connection, repairs: false).changed == 3)
        }
    }

    @Test("row-level security and inheritance that come later are noticed and told of")
    func forbidden() async throws {
        try await Self.adopted { connection in
            for statement in [
                "ALTER TABLE teams ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE teams FORCE ROW LEVEL SECURITY",
                "CREATE TABLE more () INHERITS (teams)",
            ] {
                let state = try TableState.read(connection)
                try connection.execute(statement)
                #expect(try TableState.read(connection) != state)
            }
            let schema = try PostgresSchema.refresh(connection, now: 3)
            #expect(schema.notes.contains { $0.contains("inherit") })
            #expect(schema.rowSecurityNotes.map { $0.contains("“teams”") } == [true])
        }
    }

    @Test("few connections and a sequence at its end are found by the doctor")
    func doctor() async throws {
        try await Self.adopted { connection in
            let name = connection.address["dbname"] ?? ""
            let before = Set(try PostgresDoctor(on: connection, now: 0).findings().map(\.check))
            #expect(!before.contains("sequences"))
            try connection.execute(
                """
                ALTER DATABASE \(name) CONNECTION LIMIT 3; ALTER SEQUENCE teams_id_seq MAXVALUE 50
                """)
            let found = try PostgresDoctor(on: connection, now: 0).findings()
            #expect(
                found.contains {
                    $0.check == "connections" && $0.fix.hasPrefix("ALTER DATABASE")
                })
            #expect(found.contains { $0.check == "sequences" && $0.what.contains("47 keys left") })
        }
    }

    @Test("a row at the end of the keys is no reason to set its sequence to the end")
    func farRow() async throws {
        try await Self.adopted { connection in
            try connection.execute("INSERT INTO teams (id) VALUES (\(Int64.max))")
            let far = try PostgresDoctor(on: connection, now: 0).findings().map(\.check)
            #expect(!far.contains("sequences"))
            try connection.execute("INSERT INTO teams (id) VALUES (1000)")
            let found = try PostgresDoctor(on: connection, now: 0).findings()
            #expect(
                found.first { $0.check == "sequences" }?.fix
                    == "SELECT setval('public.teams_id_seq', 1000);")
        }
    }
}
