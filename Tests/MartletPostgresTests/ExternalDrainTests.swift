import Foundation
import MartletModel
internal import MartletProtocol
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("What other programs write")
struct ExternalDrainTests {
    private static func uuid(_ number: Int) -> String {
        "00000000-0000-4000-8000-" + String(format: "%012d", number)
    }

    @Test(
        "Each transaction is a set: creates, updates and deletes, with values as they are stored",
        arguments: ExternalCapture.allCases)
    func transactions(_ capture: ExternalCapture) async throws {
        try await ExternalWorld.with(capture) { world in
            let program = try world.program()
            try program.execute(
                """
                INSERT INTO lists (title) VALUES ('a'), ('b');
                INSERT INTO tasks VALUES ('t', '\(Self.uuid(1))', 1, true, 0.1, 0.1, 1.50,
                    '2026-02-28', '2026-02-28 12:00:00.25+02', '\\x0001ff', '{"b": 1, "a": [2]}',
                    '{x,"y z",NULL}', 'x');
                """)
            try program.execute("UPDATE lists SET title = 'c' WHERE id = 1")
            try program.execute("DELETE FROM lists WHERE id = 2")
            let first = try world.take()
            // They share records, so they are one set; the list created and deleted is not in it.
            #expect(first.count == 1)
            #expect(first[0].types.map(\.name) == ["lists", "tasks"])
            #expect(first[0].types[0].create == [.integer(1)])
            let task = first[0].types[1].entries[0].attributes
            #expect(task["weight"] == .real(0.1))
            #expect(task["price"] == .text("1.50"))
            #expect(task["day"] == .text("2026-02-28"))
            #expect(task["moment"] == .text("2026-02-28 10:00:00.25+00"))
            #expect(task["data"] == .text("AAH/"))
            #expect(task["tags"] == .text("{x,\"y z\",NULL}"))
            #expect(try world.replica == world.truth())

            try program.execute("INSERT INTO lists (title) VALUES ('d')")
            try program.execute("UPDATE lists SET title = 'e', parent = 3 WHERE id = 1")
            try program.execute("DELETE FROM tasks")
            let second = try world.take()
            #expect(second.count == 3)
            #expect(second.map { $0.types[0].create } == [[.integer(3)], [], []])
            #expect(second[1].types[0].update == [.integer(1)])
            #expect(second[2].types[0].delete == [.text(Self.uuid(1))])
            #expect(try world.replica == world.truth())
            #expect(
                try world.facts(0, "1") == RowFacts(revision: 3, author: 0, others: 1))
            #expect(
                try world.facts(1, Self.uuid(1))
                    == RowFacts(revision: 4, author: 0, others: 1, isDeleted: true))
            #expect(try world.take().isEmpty)
        }
    }

    @Test(
        "A transaction is taken when it has committed; nothing waits for it",
        arguments: ExternalCapture.allCases)
    func lateCommit(_ capture: ExternalCapture) async throws {
        try await ExternalWorld.with(capture) { world in
            let (slow, quick) = (try world.program(), try world.program())
            try slow.begin()
            _ = try slow.query("INSERT INTO lists (title) VALUES ('slow')")
            try quick.execute("INSERT INTO lists (title) VALUES ('quick')")
            #expect(try world.take().count == 1)
            #expect(world.replica["lists"]?["2"] != nil)
            // A part of it that was rolled back is not there.
            _ = try slow.query("SAVEPOINT s")
            _ = try slow.query("INSERT INTO lists (title) VALUES ('undone')")
            _ = try slow.query("UPDATE lists SET title = 'undone' WHERE id = 2")
            _ = try slow.query("ROLLBACK TO SAVEPOINT s")
            #expect(try world.take().isEmpty)
            try slow.commit()
            let sets = try world.take()
            #expect(sets.count == 1)
            #expect(sets[0].recordCount == 1)
            #expect(try world.replica == world.truth())
            try quick.begin()
            _ = try quick.query("UPDATE lists SET title = 'never'")
            try quick.rollback()
            #expect(try world.take().isEmpty)
        }
    }

    @Test("The author is who the session says, else who it is")
    func authors() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute(
                """
                BEGIN; SET LOCAL martlet.author = 'anna'; INSERT INTO lists (title) VALUES ('a');
                COMMIT
                """)
            try program.execute("INSERT INTO lists (title) VALUES ('b')")
            try world.take()
            #expect(try world.author(1) == "anna")
            let user = try program.query("SELECT session_user::text").text(0, 0)
            #expect(try world.author(2) == user)
        }
    }

    @Test("What Martlet applies is not noted; what the database does behind it is, where wanted")
    func applying() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute(
                """
                BEGIN; SET LOCAL martlet.applying = 'on'; INSERT INTO lists (title) VALUES ('a');
                COMMIT
                """)
            let noted = "SELECT count(*) FROM _martlet.foreign_changes"
            #expect(try world.server.query(noted).integer(0, 0) == 0)
            try program.execute(
                """
                BEGIN; SET LOCAL martlet.applying = 'capture';
                INSERT INTO lists (title) VALUES ('b'); COMMIT
                """)
            #expect(try world.server.query(noted).integer(0, 0) == 1)
            #expect(
                try !world.server.query("SELECT \(ExternalDrain.isPending)").boolean(0, 0))
        }
    }
}
