import MartletModel
import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Comparing values with the log")
struct ValueComparisonTests {
    private static func found(
        _ connection: PostgresConnection, values: Bool = true, repairs: Bool = false
    ) throws -> PostgresComparison.Differences {
        try PostgresComparison.run(on: connection, repairs: repairs, comparesValues: values)
    }

    /// As if the log had been told of what it was never told of.
    private static func lose(_ ids: [Int], _ connection: PostgresConnection) throws {
        let list = ids.map { "'\($0)'" }.joined(separator: ", ")
        try connection.execute(
            "UPDATE _martlet.records SET revision = revision WHERE type = 1 AND id IN (\(list))")
    }

    @Test("a row whose change was lost is found by its values, and devices get it")
    func lostChange() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try PostgresCheckTests.filled(database.address)
            #expect(try Self.found(store.other).isEmpty)
            try store.other.execute(
                """
                UPDATE things SET name = 'lost', moment = NULL WHERE id = 1;
                UPDATE things SET price = 7 WHERE id = 3; DELETE FROM notes WHERE id = 'B';
                UPDATE things SET name = 'seen' WHERE id = 2
                """)
            try Self.lose([1, 3], store.other)
            // By transactions only the one is seen of which the log was not told later.
            let few = try Self.found(store.other, values: false)
            #expect(few.changed == 1 && few.deleted == 1)
            #expect(few.records.map(\.id) == ["B", "2"])
            let all = try Self.found(store.other)
            #expect(all.changed == 3 && all.deleted == 1)
            #expect(all.records.map(\.id) == ["B", "1", "2", "3"])
            #expect(try Self.found(store.other, repairs: true) == all)
            // It is noted, and so no difference any more.
            #expect(try Self.found(store.other).isEmpty)
            let entries = try store.store.begin(now: 9, maxBytes: 1 << 20)
            try store.store.commit()
            let told = try entries.flatMap { try SyncCoder.decodeChangeSet($0.body).types }
            let names = told.flatMap(\.entries).reduce(into: [:]) {
                $0[$1.id.description] = $1.attributes["name"] ?? $1.attributes["price"]
            }
            #expect(names["1"] == "lost" && names["2"] == "seen")
            #expect(told.flatMap(\.delete) == [.text("B")])
            #expect(try Self.found(store.other).isEmpty)
        }
    }

    @Test("what compaction has emptied is not known, what was written since is")
    func compacted() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try PostgresCheckTests.filled(database.address)
            try store.send(
                TestStore.set("things", update: ["1"], #""1":{"revision":1,"name":"new"}"#),
                from: "d2")
            while !store.node.compact(keeping: 1).isDone {}
            #expect(try Self.found(store.other).isEmpty)
            try store.other.execute(
                """
                UPDATE things SET short = 'lost' WHERE id = 1;
                UPDATE things SET name = 'lost' WHERE id = 2
                """)
            try Self.lose([1, 2], store.other)
            #expect(try Self.found(store.other).isEmpty)
            try store.other.execute("UPDATE things SET name = 'lost' WHERE id = 1")
            try Self.lose([1], store.other)
            #expect(try Self.found(store.other).records.map(\.id) == ["1"])
        }
    }

    @Test("a table that is dropped before its rows are read is a fault, and no trap")
    func dropped() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let connection = try PostgresCheckTests.filled(database.address).other
            let schema = try PostgresSchema.read(connection)
            try connection.execute("DROP TABLE things CASCADE")
            let error = try #require(throws: PostgresError.self) {
                _ = try ValueComparison(on: connection, schema).find(.all)
            }
            #expect(error.sqlState == "42P01")
        }
    }
}
