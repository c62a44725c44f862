import MartletModel
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("Comparing tables with the log: rows that are fine, and rows that no device can be sent")
struct LeftOutComparisonTests {
    private static func found(
        _ connection: PostgresConnection, values: Bool = false, repairs: Bool = false
    ) throws -> PostgresComparison.Differences {
        try PostgresComparison.run(on: connection, repairs: repairs, comparesValues: values)
    }

    @Test(
        "a row of a transaction that began after the drain which took it in is no difference",
        arguments: [false, true])
    func later(values: Bool) async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute("INSERT INTO lists (id, title) VALUES (1, 'a'), (2, 'b')")
            try world.takeAll()
            let entries = try world.server.transaction {
                _ = try world.server.query(
                    "SELECT pg_current_xact_id()::text FROM _martlet.dataset FOR UPDATE")
                try program.execute(
                    "UPDATE lists SET title = 'c' WHERE id = 1; INSERT INTO lists VALUES (3, 'd')")
                return try world.drain.entries(
                    on: world.server, head: world.head, now: 1, maxBytes: 1 << 20)
            }
            #expect(entries.count == 1)
            let later = try program.query(
                """
                SELECT count(*) FROM lists AS t JOIN _martlet.records AS r ON r.id = t.id::text \
                WHERE t.xmin::text::bigint > r.xmin::text::bigint
                """)
            #expect(try later.integer(0, 0) == 2)
            #expect(try Self.found(program, values: values).isEmpty)
            #expect(try Self.found(program, values: values, repairs: true).isEmpty)
            #expect(try program.query("SELECT FROM _martlet.foreign_changes").count == 0)
            try program.execute(
                """
                BEGIN; ALTER TABLE lists DISABLE TRIGGER USER; UPDATE lists SET title = 'e' WHERE id = 3;
                ALTER TABLE lists ENABLE TRIGGER USER; COMMIT
                """)
            let other = try Self.found(program, values: values, repairs: true)
            #expect(other.changed == 1 && other.records.map(\.id) == ["3"])
        }
    }

    @Test("rows that no device can be sent are named until they are corrected")
    func leftOut() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            let id = "00000000-0000-4000-8000-000000000010"
            try program.execute("INSERT INTO tasks (id, title) VALUES ('\(id)', 'a')")
            try world.takeAll()
            try program.execute(
                """
                UPDATE tasks SET title = 'b', weight = 'NaN'; INSERT INTO lists (id, title) VALUES \
                (-5, 'n'), (0, 'z')
                """)
            try world.takeAll()
            for repairs in [false, true, false] {
                let said = try PostgresDoctor(on: program, now: 0).findings()
                    .filter { $0.check == "left-out" }.map(\.what)
                #expect(said.count == 2 && said[0].contains("2, such as -5, 0"), "\(said)")
                let found = try Self.found(program, repairs: repairs)
                #expect(found.changed == 0 && found.deleted == 0 && found.leftOut == 3)
                #expect(found.records.filter(\.isLeftOut).map(\.id) == ["-5", "0", id])
                try world.takeAll()
            }
            try program.execute("UPDATE tasks SET weight = 1; DELETE FROM lists")
            try world.takeAll()
            #expect(try world.replica == world.truth())
            #expect(try Self.found(program).isEmpty)
        }
    }

    @Test("a row that is sendable once a column is gone is taken in when that is seen")
    func dropped() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            let id = "00000000-0000-4000-8000-000000000010"
            try program.execute("INSERT INTO tasks (id, title) VALUES ('\(id)', 'a')")
            try world.takeAll()
            _ = try PostgresSchema.refresh(program, now: 5)
            try program.execute("UPDATE tasks SET title = 'b', weight = 'NaN'")
            try world.takeAll()
            try program.execute("ALTER TABLE tasks DROP COLUMN weight")
            #expect(try program.query("SELECT FROM _martlet.foreign_changes").count == 0)
            _ = try PostgresSchema.refresh(program, now: 6)
            let noted = try program.query("SELECT id FROM _martlet.foreign_changes")
            #expect(try noted.count == 1 && noted.text(0, 0) == id)
        }
    }
}
