import MartletModel
import MartletProtocol
import PostgresKit
import Synchronization
import TestDatabases
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Answers in rows beside other programs")
struct DifferenceMomentTests {
    private static let script = """
        CREATE TABLE pairs (id bigserial PRIMARY KEY, a integer, b integer);
        INSERT INTO pairs (a, b) SELECT 0, 0 FROM generate_series(1, 1500);
        """

    /// A data set of 1,500 rows, and its log.
    private static func adopted() async throws -> (TestDatabase, PostgresSchema) {
        let database = try await TestDatabase.make()
        let schema = try await database.connected { connection in
            try connection.execute(Self.script)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "club", tables: ["pairs"]))
            return try PostgresSchema.read(connection)
        }
        return (database, schema)
    }

    /// What is wrong with a difference: a row that is not what its entry says, or two rows that one
    /// transaction writes and that differ.
    private static func wrong(_ part: DifferencePart, _ log: PostgresLog) throws -> [String] {
        var wrong: [String] = []
        var ends: Set<Value> = []
        for row in part.rows where row.id == .integer(1) || row.id == .integer(1500) {
            let value = row.attributes?["a"] ?? .null
            ends.insert(value)
            guard let entry = try log.entries(at: [row.revision]).first else {
                wrong.append("no entry \(row.revision)")
                continue
            }
            let changes = try SyncCoder.decodeChangeSet(entry.body).types.first
            let written = changes?.entries.first { $0.id == row.id }
            if written?.attributes["a"] != value {
                wrong.append("\(row.id) at \(row.revision): \(value)")
            }
        }
        if ends.count != 1 { wrong.append("the ends differ: \(ends)") }
        return wrong
    }

    @Test("What is pending is taken into the log first, and the rows are of a revision that has it")
    func pending() async throws {
        let (database, schema) = try await Self.adopted()
        let address = database.address
        try await TestDatabase.blocking { () throws in
            let other = try PostgresConnection(address)
            let log = PostgresLog(address, schema: schema.schema, now: { 77 })
            let before = try log.extent().head.revision
            try other.execute("UPDATE pairs SET a = 5 WHERE id IN (1, 1500)")
            let part = try log.difference(after: before, maxBytes: .max) { .max }
            #expect(part.head.revision == before + 1 && part.reached == before + 1)
            #expect(part.rows.map(\.id).sorted() == [.integer(1), .integer(1500)])
            #expect(part.rows.allSatisfy { $0.revision == before + 1 })
            #expect(try log.times(of: [before + 1]) == [before + 1: 77])
            #expect(try Self.wrong(part, log) == [])
            // One that may not write says so, and reads nothing.
            try other.execute("UPDATE pairs SET a = 6 WHERE id = 1")
            let reading = PostgresLog(address, schema: schema.schema)
            let fault = #expect(throws: StorageFault.self) {
                try reading.difference(after: before, maxBytes: .max) { .max }
            }
            #expect(fault?.kind == .busy)
            #expect(try log.difference(after: before, maxBytes: .max) { .max }.isWhole)
            #expect(try reading.difference(after: before, maxBytes: .max) { .max }.isWhole)
        }
    }

    @Test("However others write meanwhile, each row is what its entry says")
    func concurrent() async throws {
        let (database, schema) = try await Self.adopted()
        let address = database.address
        let isDone = Mutex(false)
        async let writes = TestDatabase.blocking { () -> Int in
            let writer = try PostgresConnection(
                address, PostgresOptions(statement: nil, lock: nil))
            var count = 0
            while !isDone.withLock(\.self) {
                count += 1
                try writer.execute("UPDATE pairs SET a = \(count) WHERE id IN (1, 1500)")
            }
            return count
        }
        let wrong = try await TestDatabase.blocking { () throws -> [String] in
            defer { isDone.withLock { $0 = true } }
            let log = PostgresLog(address, schema: schema.schema, now: { 1 })
            var wrong: [String] = []
            for _ in 0..<10 {
                wrong += try Self.wrong(
                    log.difference(after: 0, maxBytes: .max) { .max }, log)
            }
            return wrong
        }
        #expect(try await writes > 3)
        #expect(wrong == [])
    }
}
