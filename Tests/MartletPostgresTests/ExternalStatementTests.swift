import Foundation
import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("What other programs write: statements of all kinds")
struct ExternalStatementTests {
    @Test("ON DELETE and ON UPDATE actions, changed keys, and what the user's triggers write")
    func actions() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute(
                """
                CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    UPDATE lists SET title = upper(title) WHERE id = NEW.list; RETURN NULL; END $$;
                CREATE TRIGGER shout AFTER INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION shout();
                INSERT INTO lists (title) VALUES ('a'), ('b');
                INSERT INTO lists (title, parent) VALUES ('c', 1);
                INSERT INTO tasks (id, title, list) SELECT gen_random_uuid(), 'x', 1 + n % 3
                    FROM generate_series(1, 9) AS n
                """)
            try world.takeAll()
            #expect(world.replica["lists"]?["1"]?["title"] == .text("A"))
            #expect(try world.replica == world.truth())
            // The key of a list moves; its tasks and its sublist follow.
            try program.execute(
                """
                ALTER TABLE lists DROP CONSTRAINT lists_parent_fkey;
                ALTER TABLE lists ADD FOREIGN KEY (parent) REFERENCES lists
                    ON DELETE CASCADE ON UPDATE CASCADE;
                UPDATE lists SET id = 100 WHERE id = 1
                """)
            try world.takeAll()
            #expect(world.replica["lists"]?["1"] == nil)
            #expect(world.replica["lists"]?["100"] != nil)
            #expect(try world.replica == world.truth())
            try program.execute("DELETE FROM lists WHERE id = 100")
            let sets = try world.takeAll()
            #expect(sets.count == 1)
            #expect(sets[0].recordCount == 8)
            #expect(try world.replica == world.truth())
            #expect(world.replica["tasks"]?.count == 3)
        }
    }

    @Test("A key that is used again is the same record again")
    func keyReuse() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute("INSERT INTO lists (id, title) VALUES (7, 'a')")
            try world.take()
            try program.execute("DELETE FROM lists WHERE id = 7")
            try program.execute("INSERT INTO lists (id, title) VALUES (7, 'b')")
            #expect(try world.take()[0].types[0].update == [.integer(7)])
            try program.execute("DELETE FROM lists WHERE id = 7")
            try world.take()
            try program.execute("INSERT INTO lists (id, title) VALUES (7, 'c')")
            #expect(try world.take()[0].types[0].create == [.integer(7)])
            #expect(try world.replica == world.truth())
        }
    }

    @Test("TRUNCATE is refused with a sentence, or deletes all rows, as set")
    func truncate() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute(
                "INSERT INTO lists (title) SELECT n FROM generate_series(1, 50) AS n")
            try world.take()
            let error = #expect(throws: PostgresError.self) {
                try program.execute("TRUNCATE lists CASCADE")
            }
            #expect(error?.message.contains("Martlet synchronises") == true)
            for table in world.tables {
                try ExternalTriggers.install(on: world.server, table: table, truncation: .deletes)
                #expect(try ExternalTriggers.verify(on: world.server, table: table) == [])
            }
            try program.execute("TRUNCATE lists CASCADE")
            #expect(try world.take()[0].types[0].delete.count == 50)
            #expect(try world.replica == world.truth())
        }
    }

    @Test("Columns are added, dropped and renamed under the triggers, the key and the table too")
    func alter() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute("INSERT INTO tasks (id, title) VALUES (gen_random_uuid(), 'a')")
            // In the session whose plans know the old names.
            try program.execute(
                """
                ALTER TABLE tasks ADD note text, DROP COLUMN title;
                ALTER TABLE tasks RENAME done TO finished;
                ALTER TABLE tasks RENAME id TO number;
                ALTER TABLE tasks RENAME TO jobs;
                INSERT INTO jobs (number, note) VALUES (gen_random_uuid(), 'b');
                UPDATE jobs SET finished = true;
                UPDATE jobs SET number = gen_random_uuid() WHERE note = 'b';
                DELETE FROM jobs WHERE note = 'b';
                ALTER TABLE jobs RENAME TO tasks
                """)
            let noted = try world.server.query(
                "SELECT count(*), count(DISTINCT id) FROM _martlet.foreign_changes")
            #expect(try noted.integer(0, 0) == 7)
            #expect(try noted.integer(0, 1) == 3)
            // The server is started again, and knows the table as it is.
            let found = try PostgresSchema.read(world.server)
            let drain = ExternalDrain(
                schema: found.schema, tables: found.tables, unsendable: world.unsendable.sink)
            let entries = try world.server.transaction {
                try drain.entries(on: world.server, head: world.head, now: 1, maxBytes: 1 << 20)
            }
            #expect(entries.count == 1)
            let set = try SyncCoder.decodeChangeSet(entries[0].body)
            #expect(set.types[0].entries[0].attributes["finished"] == .boolean(true))
            #expect(set.recordCount == 1)
        }
    }

    @Test("Sessions that play back another server's changes are noted, row by row")
    func replicas() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute(
                """
                SET session_replication_role = replica;
                INSERT INTO lists (title) VALUES ('a'), ('b'), ('c');
                UPDATE lists SET id = 20, title = 'd' WHERE id = 2;
                DELETE FROM lists WHERE id = 3
                """)
            try world.takeAll()
            #expect(world.replica["lists"]?.count == 2)
            #expect(try world.replica == world.truth())
        }
    }

    @Test("Rows no device can be sent are left out and named; all others go")
    func unsendableExternalRows() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute(
                """
                INSERT INTO lists (id, title) VALUES (0, 'zero'), (-1, 'below'), (1, 'one');
                INSERT INTO tasks (id, size) VALUES (gen_random_uuid(), 'NaN'),
                    (gen_random_uuid(), 1.5);
                INSERT INTO tasks (id, weight) VALUES (gen_random_uuid(), 'infinity')
                """)
            let sets = try world.takeAll()
            #expect(sets.count == 1)
            #expect(sets[0].recordCount == 2)
            #expect(
                world.unsendable.all.map(\.type).sorted() == ["lists", "lists", "tasks", "tasks"])
        }
    }

    @Test("Writers need no right on Martlet's schema, and cannot use its functions for their own")
    func rightsOfWriters() async throws {
        try await ExternalWorld.with { world in
            let name = "analyst_\(world.server.processNumber)"
            defer {
                try? world.server.execute("DROP OWNED BY \(name); DROP ROLE \(name)")
            }
            let program = try world.program()
            try program.execute(
                """
                CREATE ROLE \(name); GRANT ALL ON lists TO \(name);
                GRANT ALL ON SCHEMA public TO \(name); SET ROLE \(name);
                SET search_path = pg_temp, public;
                CREATE TEMP TABLE foreign_changes (type bigint, id text);
                INSERT INTO lists (title) VALUES ('a')
                """)
            #expect(try world.take().count == 1)
            try program.execute("CREATE TABLE own (id bigint)")
            for statement in [
                "INSERT INTO _martlet.foreign_changes (type, id) VALUES (1, '1')",
                """
                CREATE TRIGGER own AFTER INSERT ON own REFERENCING NEW TABLE AS martlet_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION _martlet.note_rows_1()
                """,
            ] {
                let error = #expect(throws: PostgresError.self) { try program.execute(statement) }
                #expect(error?.kind == .forbidden)
            }
        }
    }

    @Test("What is wrong with triggers is found, and installing again mends it")
    func verify() async throws {
        try await ExternalWorld.with { world in
            let table = world.tables[0]
            #expect(try ExternalTriggers.verify(on: world.server, table: table) == [])
            try world.server.execute(
                """
                ALTER TABLE lists DISABLE TRIGGER martlet_update;
                DROP TRIGGER martlet_delete ON lists;
                ALTER FUNCTION _martlet.note_key_1() SECURITY INVOKER;
                CREATE OR REPLACE FUNCTION _martlet.note_row_1() RETURNS trigger LANGUAGE plpgsql
                    SECURITY DEFINER AS $$ BEGIN RETURN NULL; END $$
                """)
            let problems = try ExternalTriggers.verify(on: world.server, table: table)
            #expect(problems.count == 4)
            for name in ["martlet_update", "martlet_delete", "martlet_key", "martlet_replica"] {
                #expect(problems.contains { $0.contains("“\(name)”") })
            }
            try ExternalTriggers.install(on: world.server, table: table)
            #expect(try ExternalTriggers.verify(on: world.server, table: table) == [])
            try ExternalTriggers.remove(on: world.server, table: table)
            #expect(try ExternalTriggers.verify(on: world.server, table: table).count == 6)
            let left = try world.server.query(
                """
                SELECT count(*) FROM pg_proc WHERE pronamespace = '_martlet'::regnamespace \
                AND proname LIKE 'note%1'
                """)
            #expect(try left.integer(0, 0) == 0)
            try world.program().execute("INSERT INTO lists (title) VALUES ('a')")
            #expect(try world.take().isEmpty)
        }
    }

    @Test("a key that another trigger changes is noted, whatever the statement names")
    func keyByTrigger() async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute(
                """
                CREATE FUNCTION moved() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN NEW.id := OLD.id + 100; RETURN NEW; END';
                CREATE TRIGGER moved BEFORE UPDATE ON lists FOR EACH ROW EXECUTE FUNCTION moved();
                INSERT INTO lists (title) VALUES ('a'), ('b')
                """)
            try world.takeAll()
            try program.execute("UPDATE lists SET title = 'c' WHERE id = 1")
            try world.takeAll()
            #expect(try world.replica == world.truth())
            #expect(world.replica["lists"]?.keys.sorted() == ["101", "2"])
        }
    }
}
