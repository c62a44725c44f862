import Foundation
import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit
import SQLiteKit
import SQLiteRecords
import Synchronization
import Testing
import Waiting

@testable import MartletPostgres

@Suite("Snapshots of PostgreSQL")
struct StagingTests {
    private static let rows = """
        INSERT INTO teams (name) SELECT 'team ' || n FROM generate_series(1, 3) AS n;
        INSERT INTO players (team, number, price, seen, photo, tags, numbers, code)
            SELECT 1 + n % 3, n, n / 7.0, now(), decode(md5(n::text), 'hex'), ARRAY['a', n::text],
                ARRAY[n], 'x' FROM generate_series(1, 1200) AS n;
        UPDATE players SET captain = 1200 WHERE id < 20;
        INSERT INTO marks SELECT gen_random_uuid(), id FROM players WHERE id < 10;
        """

    private static func path() -> String {
        FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString).sqlite").path
    }

    @Test("are made of a file that holds what the log says at one moment", arguments: [20, 0])
    func snapshotOfPostgres(tries: Int) async throws {
        let database = try await TestDatabase.make()
        let (path, part) = (Self.path(), Self.path())
        defer {
            try? FileManager.default.removeItem(atPath: path)
            try? FileManager.default.removeItem(atPath: part)
        }
        try await database.connected { connection in
            try connection.execute(CatalogueTests.teams + Self.rows)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "club", tables: ["teams", "players", "marks"]))
            // Pending: a change, a deletion, a row that nobody can be sent.
            try connection.execute(
                """
                UPDATE players SET weight = 80.1 WHERE id = 7; DELETE FROM marks WHERE player = 1;
                UPDATE players SET height = 'NaN' WHERE id = 9;
                """)
            let told = Mutex<[String]>([])
            let staging = PostgresStaging(
                connection.address,
                unsendable: UnsendableRows { row, isNew in
                    if isNew { told.withLock { $0.append("\(row.type) \(row.id)") } }
                }, now: { 1 })
            let head = try staging.write(to: path, nil, { true }, tries: tries)
            #expect(try connection.count("_martlet.foreign_changes") == 0)
            let stored = try connection.query("SELECT revision, hash FROM _martlet.dataset")
            #expect(head.revision == (try stored.integer(0, 0)))
            #expect(head.hash.bytes == (try stored.binary(0, 1)))

            let cut = try SnapshotMaker(path: path).make { _ in part }
            let schema = try PostgresSchema.read(connection)
            #expect(cut.schema == schema.schema.fingerprint)
            #expect(cut.revision == head.revision)
            #expect(cut.lineage == head.hash.text)
            #expect(cut.parts[0].records.map(\.count) == [3, 1199, 8])
            #expect(told.withLock(\.self) == ["players 9"])

            let file = try Connection(path: part)
            for table in schema.tables {
                let records = RecordTable(type: table.type, connection: file)
                var wrong: [RecordID] = []
                try TableRows(table, on: connection).forEachMarked(unsendable: { _, _ in }) {
                    id, row, mark in
                    if try records.read(id) != row { wrong.append(id) }
                    let find = try file.statement(
                        "SELECT revision FROM martlet_records WHERE type = ?1 AND id = ?2")
                    defer { find.reset() }
                    find.bind(1, integer: table.number)
                    find.bind(2, id)
                    if try !find.step() || find.integer(0) != mark.revision { wrong.append(id) }
                }
                #expect(wrong == [])
            }
        }
    }

    @Test("hold what the log says however others write meanwhile", arguments: [20, 0])
    func concurrent(tries: Int) async throws {
        let database = try await TestDatabase.make()
        let path = Self.path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE pairs (id bigserial PRIMARY KEY, a integer, b integer);
                INSERT INTO pairs (a, b) SELECT 0, 0 FROM generate_series(1, 1500);
                """)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "club", tables: ["pairs"]))
        }
        let isDone = Mutex(false)
        let address = database.address
        async let writes = TestDatabase.blocking { () -> Int in
            let writer = try PostgresConnection(
                address, PostgresOptions(statement: nil, lock: nil))
            var count = 0
            while !isDone.withLock(\.self) {
                count += 1
                // Both ends of the table in one transaction; only its entry may change them.
                try writer.execute(
                    """
                    UPDATE pairs SET a = \(count) WHERE id IN (1, 1500);
                    INSERT INTO pairs (a) VALUES (\(count)); DELETE FROM pairs WHERE id = \(count + 1)
                    """)
            }
            return count
        }
        let result = try await database.connected { connection -> [String] in
            defer { isDone.withLock { $0 = true } }
            var wrong: [String] = []
            for _ in 0..<3 {
                let staging = PostgresStaging(
                    address, unsendable: UnsendableRows(), now: { 1 })
                let head = try staging.write(to: path, nil, { true }, tries: tries)
                wrong += try connection.differences(from: path, at: head.revision)
            }
            return wrong
        }
        #expect(try await writes > 3)
        #expect(result == [])
    }

    @Test("miss nothing that was written while the table was adopted")
    func adoptedMeanwhile() async throws {
        let database = try await TestDatabase.make()
        let path = Self.path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE pairs (id bigserial PRIMARY KEY, a integer, b integer);
                INSERT INTO pairs (a, b) SELECT 0, 0 FROM generate_series(1, 1500);
                """)
        }
        let count = Mutex(0)
        let isDone = Mutex(false)
        let address = database.address
        async let writes: Void = TestDatabase.blocking {
            let writer = try PostgresConnection(
                address, PostgresOptions(statement: nil, lock: nil))
            while !isDone.withLock(\.self) {
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                try writer.execute(
                    """
                    UPDATE pairs SET a = \(number) WHERE id IN (1, 1500);
                    INSERT INTO pairs (a) VALUES (\(number)); DELETE FROM pairs WHERE id = \(number + 1)
                    """)
            }
        }
        try await waitUntil("the writer writes") { count.withLock { $0 > 3 } }
        try await database.connected { connection in
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "club", tables: ["pairs"]))
        }
        let adopted = count.withLock(\.self)
        try await waitUntil("it has written more") { count.withLock { $0 > adopted + 3 } }
        isDone.withLock { $0 = true }
        try await writes
        let wrong = try await database.connected { connection in
            let staging = PostgresStaging(address, unsendable: UnsendableRows(), now: { 1 })
            let head = try staging.write(to: path)
            return try connection.differences(from: path, at: head.revision)
        }
        #expect(wrong == [])
    }

    @Test("are refused of tables that are others than the server's, and given up when told")
    func refusedStaging() async throws {
        let database = try await TestDatabase.make()
        let path = Self.path()
        try await database.connected { connection in
            try connection.execute(CatalogueTests.teams + Self.rows)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "club", tables: ["teams", "players", "marks"]))
            let staging = PostgresStaging(
                connection.address, unsendable: UnsendableRows(), now: { 1 })
            let fault = #expect(throws: StorageFault.self) {
                try staging.write(to: path, schema: "0123")
            }
            #expect(fault?.description.contains("start it again") == true)
            #expect(throws: StorageFault.self) { try staging.write(to: path, while: { false }) }
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }
}

extension PostgresConnection {
    /// What a staged file of the table `pairs` holds that the log up to a revision does not say, and
    /// the other way.
    fileprivate func differences(from path: String, at revision: Int64) throws -> [String] {
        var folded: [String: [String: Value]] = [:]
        let log = try query(
            "SELECT body FROM _martlet.log WHERE revision <= $1 ORDER BY revision",
            [.integer(revision)])
        for row in 0..<log.count {
            for changes in try SyncCoder.decodeChangeSet(log.binary(row, 0)).types {
                for entry in changes.entries {
                    for (name, value) in zip(entry.attributes.names, entry.attributes.values) {
                        folded[entry.id.description, default: [:]][name] = value
                    }
                }
                for id in changes.delete { folded[id.description] = nil }
            }
        }
        let file = try Connection(path: path)
        let schema = try PostgresSchema.read(self)
        var wrong: [String] = []
        var count = 0
        try RecordTable(type: schema.schema.types[0], connection: file).forEach { id, row in
            count += 1
            let told = folded[id.description]
            if told?["a"] ?? .null != row["a"] || told?["b"] ?? .null != row["b"] {
                wrong.append("\(id)")
            }
        }
        if count != folded.count { wrong.append("\(count) rows, \(folded.count) told of") }
        return wrong
    }
}
