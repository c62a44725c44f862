import Foundation
import MartletStore
import TestFolders
import Testing

@Suite("Statements of one's own")
struct PreparedStatementTests {
    private let folder: TemporaryFolder
    private let pool: DatabasePool

    init() async throws {
        folder = try TemporaryFolder()
        pool = try await DatabasePool.open(path: folder.path + "/a.sqlite")
        try await pool.write {
            try $0.rows("CREATE TABLE results (athlete TEXT NOT NULL, seconds REAL, place INTEGER)")
        }
    }

    @Test("values of all kinds go in and come out, run after run")
    func valuesOfStatements() async throws {
        let read = try await pool.write { context in
            let insert = try context.prepare("INSERT INTO results VALUES (?, ?, ?)")
            try insert.run("Ada", 11.5, 1)
            try insert.run("Bob", Double?.none, Int64?(2))
            try insert.run("Zoë", Double.nan, UInt8(3))
            try insert.run(["Eve", .null, .null])
            let select = try context.prepare(
                "SELECT * FROM results WHERE place IS ? OR athlete = ? ORDER BY rowid")
            var read: [RecordValues] = []
            try select.forEachRow(Int?.none, "Ada") { read.append(try $0.values) }
            try select.forEachRow(3, "") { read.append(try $0.values) }
            try select.forEachRow(2, "") { read.append(try $0.values) }
            return read
        }
        #expect(
            read == [
                ["athlete": "Ada", "seconds": 11.5, "place": 1],
                ["athlete": "Eve", "seconds": .null, "place": .null],
                ["athlete": "Zoë", "seconds": .null, "place": 3],
                ["athlete": "Bob", "seconds": .null, "place": 2],
            ])
    }

    @Test("within its own rows it runs as a second statement")
    func nested() async throws {
        let pairs = try await pool.write { context in
            let insert = try context.prepare("INSERT INTO results VALUES (?, NULL, ?)")
            for rank in 1...3 { try insert.run("A", rank) }
            let above = try context.prepare(
                "SELECT place FROM results WHERE place > ? ORDER BY place")
            var pairs: [[Int]] = []
            try above.forEachRow(0) { row in
                let rank: Int = try row.get(at: 0)
                try above.forEachRow(rank) { pairs.append([rank, try $0.get(at: 0)]) }
            }
            return pairs
        }
        #expect(pairs == [[1, 2], [1, 3], [2, 3]])
    }

    @Test("the wrong number of values, a NUL, a violated constraint: each a typed refusal")
    func refusalsOfStatements() async throws {
        try await pool.write { context in
            let insert = try context.prepare("INSERT INTO results VALUES (?, ?, ?)")
            #expect(throws: StoreError.self) { try insert.run("Ada") }
            #expect(Self.kind { try insert.run("Ada") } == .statement)
            #expect(Self.kind { try insert.run("Ada", 1.0, 1, 1) } == .statement)
            #expect(Self.kind { try insert.run([]) } == .statement)
            #expect(Self.kind { try insert.run("A\0da", 1.0, 1) } == .value)
            #expect(Self.kind { try insert.run(String?.none, 1.0, 1) } == .constraint)
            #expect(Self.kind { _ = try context.prepare("INSERT INTO nothing") } == .statement)
            #expect(Self.kind { _ = try context.prepare("SELECT * FROM nobody") } == .unknown)
            try insert.run("Ada", 1.0, 1)
            #expect(try context.rows("SELECT count(*) AS n FROM results") == [["n": 1]])
        }
    }

    @Test("outside the closure it says so")
    func afterTheClosure() async throws {
        let kept = Kept()
        try await pool.write { kept.statement = try $0.prepare("SELECT 1") }
        #expect(Self.kind { try kept.statement?.run() } == .misuse)
    }

    /// Carries a statement out of its closure, which nobody should.
    private final class Kept: @unchecked Sendable {
        var statement: PreparedStatement?
    }

    private static func kind(_ body: () throws -> Void) -> StoreError.Kind? {
        do {
            try body()
            return nil
        } catch {
            return (error as? StoreError)?.kind
        }
    }
}
