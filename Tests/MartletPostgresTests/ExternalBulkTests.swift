import Foundation
import MartletModel
internal import MartletProtocol
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("What other programs write: much of it")
struct ExternalBulkTests {
    @Test("COPY and an UPDATE of 1,000 rows are one set each")
    func thousand() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            var lines: [UInt8]? = Array(
                (1...1_000).map { "\($0)\ttitle \($0)\n" }.joined().utf8)
            _ = try program.copyIn("COPY lists (id, title) FROM STDIN") { lines.take() }
            #expect(try world.take().map(\.recordCount) == [1_000])
            try program.execute("UPDATE lists SET title = 'new', parent = 1 WHERE id > 1")
            #expect(try world.take().map(\.recordCount) == [999])
            #expect(try world.replica == world.truth())
        }
    }

    @Test("30,000 rows come in parts, within the bytes of each, and writes between them are right")
    func thirtyThousand() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            // Each row refers to one that was inserted later.
            try program.execute(
                """
                CREATE INDEX ON lists (parent);
                ALTER TABLE lists ALTER CONSTRAINT lists_parent_fkey DEFERRABLE INITIALLY DEFERRED;
                INSERT INTO lists (id, title, parent) SELECT n, 'title ' || n,
                    nullif(n + 1, 30001) FROM generate_series(1, 30000) AS n WHERE n % 2 = 0;
                INSERT INTO lists (id, title, parent) SELECT n, 'title ' || n,
                    CASE WHEN n > 2 THEN n - 2 END FROM generate_series(1, 30000) AS n
                    WHERE n % 2 = 1
                """)
            let first = try world.take()
            #expect(first.count == 1)
            #expect(first[0].recordCount < 28_000)
            try program.execute("UPDATE lists SET title = 'between' WHERE id IN (28000, 29999)")
            try program.execute("DELETE FROM lists WHERE id = 30000")
            try world.takeAll()
            #expect(world.entries.count < 12)
            #expect(try world.replica == world.truth())

            try program.execute("UPDATE lists SET title = 'new', parent = NULL")
            try world.takeAll()
            #expect(try world.replica == world.truth())
            try program.execute("DELETE FROM lists")
            try world.takeAll()
            #expect(world.replica["lists"] == [:])
            let left = try world.server.query("SELECT count(*) FROM _martlet.foreign_changes")
            #expect(try left.integer(0, 0) == 0)
        }
    }

    @Test("a backlog is taken a thousand transactions at a time, several in a set")
    func backlog() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute(
                """
                DO $$ BEGIN FOR n IN 1..1500 LOOP
                    INSERT INTO lists (id, title, parent) VALUES (n, 'a', nullif(n / 2, 0));
                    COMMIT;
                    IF n % 500 = 0 THEN UPDATE lists SET title = 'b' WHERE id < 100; COMMIT; END IF;
                END LOOP; END $$
                """)
            let first = try world.take(inParts: true)
            #expect(first.count < 20)
            let left = "SELECT count(*) FROM _martlet.foreign_transactions"
            #expect(try world.server.query(left).integer(0, 0) == 503)
            // The rest is no backlog any more, so each transaction becomes a set.
            try world.take(inParts: true)
            #expect(try world.server.query(left).integer(0, 0) == 0)
            #expect(world.entries.count > 503)
            #expect(try world.replica == world.truth())
        }
    }

    @Test("Many transactions at once stay whole")
    func manyTransactions() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            for n in 1...400 {
                try program.execute(
                    "INSERT INTO lists (id, title) VALUES (\(2 * n), 'a'), (\(2 * n + 1), 'b')")
            }
            #expect(try world.take().map(\.recordCount) == Array(repeating: 2, count: 400))
            #expect(try world.replica == world.truth())
        }
    }
}
