import Foundation
import MartletCore
import MartletProtocol
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("What other programs write: whatever they do")
struct ForeignModelTests {
    /// A statement that may do nothing, or be refused.
    private static func statement(_ chance: inout Chance) -> String {
        func list() -> Int { .random(in: 1...12, using: &chance) }
        let uuid = "'00000000-0000-4000-8000-0000000000\(Int.random(in: 10...29, using: &chance))'"
        switch Int.random(in: 0..<12, using: &chance) {
        case 0, 1:
            return "INSERT INTO lists (id, title, parent) VALUES (\(list()), 'l', \(list()))"
        case 2: return "INSERT INTO lists (id, title) VALUES (\(list()), 'r')"
        case 3, 4: return "INSERT INTO tasks (id, title, list) VALUES (\(uuid), 't', \(list()))"
        case 5: return "UPDATE lists SET title = title || 'x' WHERE id = \(list())"
        case 6: return "UPDATE lists SET parent = \(list()) WHERE id = \(list())"
        case 7: return "UPDATE tasks SET list = \(list()) WHERE id = \(uuid)"
        case 8: return "UPDATE tasks SET done = NOT coalesce(done, true)"
        case 9: return "UPDATE lists SET id = \(list()) WHERE id = \(list())"
        case 10: return "DELETE FROM lists WHERE id = \(list())"
        default: return "DELETE FROM tasks WHERE id = \(uuid)"
        }
    }

    @Test(
        "a device that follows the log has what the tables hold, in parts or as wholes",
        arguments: ForeignCapture.allCases, [1, 2, 3, 4])
    func model(_ capture: ForeignCapture, seed: UInt64) async throws {
        try await ForeignWorld.with(capture) { world in
            var chance = Chance(seed: seed)
            let programs = [try world.program(), try world.program(), try world.program()]
            for program in programs { try program.execute("SET lock_timeout = 5") }
            for _ in 0..<250 {
                let program = programs[Int.random(in: 0..<3, using: &chance)]
                switch Int.random(in: 0..<10, using: &chance) {
                case 0 where !program.isInTransaction: try program.begin()
                case 1 where program.isInTransaction:
                    // A failed one is rolled back by it.
                    if program.hasFailedTransaction {
                        try program.rollback()
                    } else {
                        try program.commit()
                    }
                case 2 where program.isInTransaction: try program.rollback()
                case 3:
                    let isWhole = Bool.random(using: &chance)
                    try world.take(maxBytes: isWhole ? 1 << 20 : 10, inParts: !isWhole)
                default:
                    let statement = Self.statement(&chance)
                    _ =
                        try? program.isInTransaction
                        ? program.savepoint { try program.execute(statement) }
                        : program.execute(statement)
                }
            }
            for program in programs where program.isInTransaction { try program.rollback() }
            try world.takeAll()
            #expect(try world.replica == world.truth())
            #expect(world.head.revision > 10)
            let left = try world.server.query("SELECT count(*) FROM _martlet.foreign_changes")
            #expect(try left.integer(0, 0) == 0)
        }
    }
}
