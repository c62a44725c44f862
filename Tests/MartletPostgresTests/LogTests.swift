import MartletModel
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Reading the log in PostgreSQL")
struct PostgresLogTests {
    private static func filled(_ address: PostgresAddress) throws -> TestStore {
        let store = try TestStore(address, StoreTests.script, tables: StoreTests.tables)
        for index in 1...6 {
            try store.send(
                TestStore.set(
                    "teams", create: ["-\(index)"], #""-\#(index)":{"name":"t\#(index)"}"#))
        }
        try store.send(TestStore.set("teams", update: ["2"], #""2":{"revision":2,"wins":1}"#))
        try store.send(TestStore.set("teams", delete: ["3"], #""3":{"revision":3}"#))
        return store
    }

    @Test("entries come in order and end where their bytes do")
    func entries() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try Self.filled(database.address)
            let log = store.log
            #expect(
                try log.entries(from: 2, through: 5, maxBytes: .max).map(\.revision) == [
                    2, 3, 4, 5,
                ])
            let body = try log.entries(from: 1, through: 1, maxBytes: 1)[0].body.count
            #expect(try log.entries(from: 1, through: 8, maxBytes: body).map(\.revision) == [1])
            #expect(
                try log.entries(from: 1, through: 8, maxBytes: body + 1).map(\.revision) == [1, 2])
            #expect(Set(try log.entries(at: [3, 1, 99]).map(\.revision)) == [1, 3])
            #expect(try log.times(of: [1, 99]).keys.sorted() == [1])
            #expect(try log.hash(at: 0) == LineageHash(origin: store.store.identity))
            #expect(try log.hash(at: 99) == nil)
            #expect(try log.extent() == LogExtent(head: store.node.head, floor: 0))
        }
    }

    @Test("asked for nothing, it does not ask the server")
    func nothing() throws {
        let log = PostgresLog(
            schema: Schema(types: []),
            connect: { () throws(PostgresError) in throw PostgresError(.unreachable, "asked") })
        #expect(try log.entries(at: []) == [])
        #expect(try log.times(of: []) == [:])
        #expect(throws: StorageFault.self) { try log.entries(at: [1]) }
    }

    @Test("a difference holds each row once, where it last changed")
    func differenceHoldsRowOnce() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try Self.filled(database.address)
            let part = try store.log.difference(after: 1, maxBytes: .max) { .max }
            #expect(part.isWhole)
            #expect(part.rows.map(\.position) == [4, 5, 6, 7, 8])
            #expect(part.rows.map(\.id) == [4, 5, 6, 2, 3].map { .integer($0) })
            #expect(part.rows[3].attributes?["wins"] == 1)
            #expect(part.rows[4].attributes == nil)
            let first = try store.log.difference(after: 0, maxBytes: 1) { .max }
            #expect(first.rows.map(\.position) == [1])
            #expect(first.reached == 1)
            let limited = try store.log.difference(after: 4, maxBytes: .max) { 6 }
            #expect(limited.rows.map(\.position) == [5, 6])
            #expect(limited.reached == 6)
            #expect(!limited.isWhole)
        }
    }

    @Test("rows that a new column gave a value stand where that was told")
    func announcedRowsInLog() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try Self.filled(database.address)
            try store.other.execute(
                "INSERT INTO _martlet.announced VALUES (8, 1, '1'), (8, 1, '2'), (8, 1, '6')")
            let part = try store.log.difference(after: 6, maxBytes: .max) { .max }
            #expect(part.rows.map(\.id) == [2, 1, 3, 6].map { .integer($0) })
            #expect(part.rows.map(\.position) == [7, 8, 8, 8])
            #expect(part.rows.map(\.revision) == [7, 1, 8, 6])
            // Another column has told of one of them before.
            try store.other.execute("INSERT INTO _martlet.announced VALUES (7, 1, '1')")
            let once = try store.log.difference(after: 6, maxBytes: .max) { .max }
            #expect(once.rows.map(\.id) == [1, 2, 3, 6].map { .integer($0) })
            #expect(once.rows.map(\.position) == [7, 7, 8, 8])
        }
    }

    @Test("more rows than are read at once come whole, also those of one set")
    func largeSpanOfRows() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try TestStore(
                database.address, StoreTests.script, tables: StoreTests.tables)
            let ids = (1...4_500).map { "-\($0)" }
            try store.send(
                TestStore.set(
                    "teams", create: ids,
                    ids.map { "\"\($0)\":{\"name\":\"t\($0)\"}" }.joined(separator: ",")))
            try store.send(TestStore.set("teams", update: ["7"], #""7":{"revision":1,"wins":1}"#))
            let part = try store.log.difference(after: 0, maxBytes: 1 << 30) { .max }
            #expect(part.isWhole)
            #expect(part.rows.count == 4_500)
            #expect(Set(part.rows.map(\.id)).count == 4_500)
        }
    }

    @Test("a connection that is cut is made again")
    func reconnects() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try Self.filled(database.address)
            #expect(try store.log.entries(from: 1, through: 9, maxBytes: .max).count == 8)
            _ = try store.other.query(
                """
                SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                """)
            #expect(try store.log.entries(from: 1, through: 9, maxBytes: .max).count == 8)
        }
    }
}
