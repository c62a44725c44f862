import MartletModel
import MartletProtocol
import PostgresKit
import SQLiteKit
import SQLiteRecords
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Comparing devices with PostgreSQL")
struct PostgresCheckTests {
    static let script = """
        CREATE TYPE mood AS ENUM ('fine', 'grim');
        CREATE TABLE things (
            id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, flag boolean, small smallint,
            large bigint, single real, double double precision, price numeric(20, 4), name text,
            short varchar(10), day date, hour time, moment timestamp, seen timestamptz,
            token uuid, photo bytea, raw json, facts jsonb, tags text[], numbers integer[],
            mood mood);
        CREATE TABLE notes (id text PRIMARY KEY, text text);
        CREATE TABLE marks (id uuid PRIMARY KEY, text text);
        """

    private static let full = #"""
        "flag":true,"small":-7,"large":9007199254740993,"single":0.1,"double":-0.1,\#
        "price":"12.5","name":"żółw","short":"kurz","day":"2026-02-03","hour":"09:30",\#
        "moment":"2026-02-03T04:05:06.7","seen":"2026-02-03T04:05:06+02:00",\#
        "token":"00000000-0000-4000-8000-00000000000a","photo":"AAEC","raw":"{ \"a\": 1}",\#
        "facts":"{\"b\": 1, \"a\": [1, 2]}","tags":"{a,\"b c\"}","numbers":"{1,2}","mood":"grim"
        """#

    /// What a device makes of the log: its tables, as they are hashed.
    private static func device(_ store: TestStore) throws -> Connection {
        let connection = try Connection(path: ":memory:")
        let schema = try PostgresSchema.read(store.other)
        try connection.execute(schema.deviceScript)
        try connection.execute("CREATE TABLE martlet_records (type INTEGER, id, revision INTEGER)")
        for entry in try store.log.entries(
            from: 1, through: store.node.head.revision, maxBytes: .max)
        {
            let set = try SyncCoder.decodeChangeSet(entry.body)
            for changes in set.types {
                let type = try #require(schema.schema[changes.name])
                let position = try #require(schema.schema.index(of: changes.name))
                let table = RecordTable(type: type, connection: connection)
                for one in changes.entries where changes.create.contains(one.id) {
                    try table.insert(one.id, one.attributes, absentMeansNull: true)
                    let mark = try connection.prepare(
                        "INSERT INTO martlet_records VALUES (?1, ?2, ?3)")
                    mark.bind(1, integer: Int64(position))
                    mark.bind(2, one.id)
                    mark.bind(3, integer: one.revision ?? 0)
                    while try mark.step() {}
                }
            }
        }
        return connection
    }

    private static func asked(
        _ store: TestStore, _ device: Connection
    ) throws -> [CheckedType] {
        try store.store.schema.types.enumerated().map { position, type in
            var hasher = RowHasher(type: type)
            let hash = try hasher.whole(on: device, number: Int64(position))
            return CheckedType(
                name: type.name,
                attributes: hasher.attributes.map {
                    CheckedAttribute(name: $0.name, kind: $0.kind.rawValue)
                }, ranges: [CheckedRange(hash: hash)])
        }
    }

    static func filled(_ address: PostgresAddress) throws -> TestStore {
        let store = try TestStore(address, script, tables: ["things", "notes", "marks"])
        try store.send(
            TestStore.set(
                "things", create: ["-1", "-2", "-3"],
                #""-1":{\#(full)},"-2":{"name":"","price":"123456789012.3400"},"-3":{}"#))
        try store.send(
            TestStore.set(
                "notes", create: [#""a""#, #""B""#, #""é""#],
                #""a":{"text":"1"},"B":{"text":"2"},"é":{}"#))
        let ids = (0..<40).map { "\"00000000-0000-4000-8000-0000000000\(10 + $0)\"" }
        try store.send(
            TestStore.set(
                "marks", create: ids, ids.map { "\($0):{\"text\":\"m\"}" }.joined(separator: ",")))
        return store
    }

    @Test("a row has the hash that a device computes of its own copy, whatever the type")
    func equal() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try Self.filled(database.address)
            let device = try Self.device(store)
            let check = PostgresCheck(database.address, schema: store.store.schema)
            let answer = try check.compare(
                CheckRequest(revision: 3, types: try Self.asked(store, device)))
            #expect(answer.revision == 3)
            #expect(answer.types.map(\.ranges) == [[.equal], [.equal], [.equal]])
        }
    }

    @Test("what differs is given whole where it is little; what changed since takes no part")
    func different() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try Self.filled(database.address)
            let device = try Self.device(store)
            let check = PostgresCheck(database.address, schema: store.store.schema)
            try store.send(
                TestStore.set("notes", update: [#""B""#], #""B":{"revision":2,"text":"3"}"#))
            var types = try Self.asked(store, device)
            types[2].ranges[0].hash.add(row: 1)
            types[0].ranges = [
                CheckedRange(below: .integer(2), hash: RangeHash()),
                CheckedRange(from: .integer(3), below: .integer(4), hash: RangeHash()),
            ]
            let answer = try check.compare(CheckRequest(revision: 3, types: types))
            guard case .rows(let first) = answer.types[0].ranges[0],
                case .rows(let third) = answer.types[0].ranges[1],
                case .rows(let notes) = answer.types[1].ranges[0],
                case .hash(_, let without) = answer.types[2].ranges[0]
            else {
                Issue.record("\(answer.types.map(\.ranges))")
                return
            }
            #expect(first.rows.map(\.id) == [.integer(1)])
            #expect(first.rows[0].revision == 1)
            #expect(first.rows[0].attributes["photo"] == "AAEC")
            #expect(third.rows.map(\.id) == [.integer(3)])
            #expect(notes.without == [.text("B")])
            #expect(notes.rows.map(\.id) == [.text("a"), .text("é")])
            #expect(without == [])
        }
    }

    @Test("what another program wrote and the log does not have yet takes no part")
    func externalWriteBeforeCheck() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try Self.filled(database.address)
            let device = try Self.device(store)
            for table in try PostgresSchema.read(store.other).tables {
                try ExternalTriggers.install(on: store.other, table: table)
            }
            try store.other.execute("UPDATE notes SET text = 'analyst' WHERE id = 'a'")
            let check = PostgresCheck(database.address, schema: store.store.schema)
            let answer = try check.compare(
                CheckRequest(revision: 3, types: try Self.asked(store, device)))
            guard case .rows(let notes) = answer.types[1].ranges[0] else {
                Issue.record("\(answer.types.map(\.ranges))")
                return
            }
            #expect(notes.without == [.text("a")])
        }
    }
}
