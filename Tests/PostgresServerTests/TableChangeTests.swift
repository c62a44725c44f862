import Dispatch
import Martlet
internal import MartletModel
import MartletPostgres
import MartletServer
import PostgresKit
import Synchronization
import Testing
import Waiting

@Suite("A data set in PostgreSQL: snapshots and tables that change", .timeLimit(.minutes(3)))
struct TableChangeTests {
    @Test("a new device begins with a snapshot, and has what came after it")
    func snapshotForNewDevice() async throws {
        let database = try await ServedDatabase()
        try await database.program { connection in
            try connection.execute(
                """
                INSERT INTO teams (name) SELECT 'team ' || n FROM generate_series(1, 500) AS n;
                INSERT INTO players SELECT gen_random_uuid(), id, 'n' FROM teams;
                """)
        }
        let port = try await database.start { $0.snapshotEvery = 1 }
        try await waitUntil("there is a snapshot") {
            try await ServedDatabase.metric(port, "martlet_snapshots_made_total") ?? 0 > 0
        }
        let bytes = Mutex<Int64>(0)
        let device = try await database.device("new", port) { options in
            options.seeding = .server
            options.seedingProgress = { progress in
                bytes.withLock { $0 = max($0, progress.received) }
            }
        }
        try await device.sync()
        #expect(bytes.withLock(\.self) > 0)
        #expect(try await ServedDatabase.teams(device).count == 500)
        try await ServedDatabase.add("later", device)
        try await device.sync()
        #expect(try await database.column("SELECT count(*)::text FROM teams") == ["501"])
        await device.close()
        await database.stop()
    }

    @Test("columns that came and went while no server ran reach devices")
    func columnsThatCameAndWent() async throws {
        let database = try await ServedDatabase()
        var port = try await database.start("a")
        let device = try await database.device("old", port)
        try await ServedDatabase.add("Falcons", device)
        try await device.sync()
        await device.close()
        await database.stop()
        try await database.program { connection in
            try connection.execute(
                """
                ALTER TABLE teams ADD COLUMN size integer NOT NULL DEFAULT 11, DROP COLUMN score;
                ALTER TABLE players RENAME COLUMN note TO remark;
                ALTER TABLE players RENAME TO athletes;
                """)
        }
        port = try await database.start("b")
        try await database.untilLogged("has a new column “size”")
        try await database.untilLogged("called “athletes” now")
        let new = try await database.device("new", port)
        try await new.sync()
        let sizes = try await new.read { context in
            try context.rows("SELECT size FROM teams").map { $0["size"] }
        }
        #expect(sizes == [.integer(11)])
        try await new.write { context in
            _ = try context.insert("teams", ["name": .text("Owls"), "size": .integer(5)])
        }
        try await new.sync()
        #expect(
            try await database.column("SELECT size::text FROM teams ORDER BY id") == ["11", "5"])
        let remarks = try await new.read { context in
            try context.rows("SELECT remark FROM players").count
        }
        #expect(remarks == 0)
        await new.close()
        await database.stop()
    }

    /// Exchanges until that works: while tables are taken up, it may not.
    private static func sync(_ device: MartletClient) async throws {
        try await waitUntil("the server takes changes again") {
            do {
                try await device.sync()
                return true
            } catch {
                return false
            }
        }
    }

    @Test("columns that change under a running server are taken up by it")
    func running() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start("a")
        let device = try await database.device("old", port)
        try await ServedDatabase.add("Falcons", device)
        try await device.sync()
        try await database.program { connection in
            try connection.execute("ALTER TABLE teams ADD COLUMN size integer NOT NULL DEFAULT 11")
        }
        try await ServedDatabase.add("Owls", device)
        // What comes while the data set is opened again waits for it, and is not refused.
        try await device.sync()
        #expect(try await database.column("SELECT count(*)::text FROM teams") == ["2"])
        try await waitUntil("the column is taken up") {
            try await ServedDatabase.metric(port, "martlet_tables_taken_up_total") ?? 0 > 0
        }
        let new = try await database.device("new", port)
        try await new.sync()
        let sizes = try await new.read { context in
            try context.rows("SELECT size FROM teams").map { $0["size"] }
        }
        #expect(sizes == [.integer(11), .integer(11)])
        try await database.program { connection in
            try connection.execute("ALTER TABLE teams DROP COLUMN score")
        }
        try await ServedDatabase.add("Hawks", device)
        try await Self.sync(device)
        #expect(
            try await database.column("SELECT name FROM teams ORDER BY id") == [
                "Falcons", "Owls", "Hawks",
            ])
        #expect(try await device.parked().isEmpty)
        try await waitUntil("the server is ready") {
            try await ServedDatabase.get(port, "/readyz").status == 200
        }
        await device.close()
        await new.close()
        await database.stop()
    }

    @Test("a column that policies read is not taken for another one that has its name now")
    func exchanged() async throws {
        let database = try await ServedDatabase()
        try await database.program { connection in
            try connection.execute(
                """
                ALTER TABLE players ADD COLUMN remark text;
                INSERT INTO players VALUES (gen_random_uuid(), NULL, 'top', 'HIDDEN');
                """)
        }
        let rules: @Sendable (inout ServerConfiguration) -> Void = {
            $0.rules = Array(
                """
                CREATE POLICY every ON teams USING (name <> 'x');
                CREATE POLICY open ON players USING (note <> 'top');
                """.utf8)
        }
        let port = try await database.start("a", rules)
        let device = try await database.device("old", port)
        try await device.sync()
        try await database.program { connection in
            try connection.execute(
                """
                ALTER TABLE players RENAME note TO other; ALTER TABLE players RENAME remark TO note;
                ALTER TABLE players RENAME other TO remark;
                """)
        }
        try await waitUntil("the server is not ready") {
            try await ServedDatabase.get(port, "/readyz").status == 503
        }
        try await database.untilLogged("is the one that was “remark”")
        await #expect(throws: ServerFailure.self) { try await database.start("b", rules) }
        try await database.program { connection in
            try connection.execute(
                """
                ALTER TABLE players RENAME note TO other; ALTER TABLE players RENAME remark TO note;
                ALTER TABLE players RENAME other TO remark;
                """)
        }
        try await waitUntil("the server is ready") {
            try await ServedDatabase.get(port, "/readyz").status == 200
        }
        try await Self.sync(device)
        #expect(try await device.read { try $0.rows("SELECT id FROM players") }.isEmpty)
        await device.close()
        await database.stop()
    }

    @Test("servers with other policies on one database are told, until they have the same")
    func otherPolicies() async throws {
        let database = try await ServedDatabase()
        let told = "has other policies, or none"
        let rules: (String) -> @Sendable (inout ServerConfiguration) -> Void = { condition in
            {
                $0.rules = Array(
                    """
                    CREATE POLICY every ON teams USING (\(condition));
                    CREATE POLICY every ON players USING (true);
                    """.utf8)
            }
        }
        try await database.start("a", rules("true"))
        let same = try await database.start("b", rules("true"))
        // Each server looks at its tables, and so at the others, after a change of tables.
        try await database.program { connection in
            try connection.execute("ALTER TABLE teams ADD COLUMN size integer")
        }
        try await waitUntil("the change is taken up") {
            try await ServedDatabase.metric(same, "martlet_tables_taken_up_total") ?? 0 > 0
        }
        #expect(!database.log.contains { $0.contains(told) })
        let other = MartletServer(
            try {
                var configuration = try database.configuration("c")
                rules("name <> 'x'")(&configuration)
                return configuration
            }())
        _ = try await other.start()
        try await waitUntil("all three servers are told") {
            database.log.count { $0.contains(told) } == 3
        }
        await other.stop()
        try await database.untilLogged("All servers have the same policies")
        await database.stop()
    }

    @Test("the first trigger of a table is taken up: devices get the rows that it changes")
    func trigger() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start("a")
        let device = try await database.device("old", port)
        try await database.program { connection in
            try connection.execute(
                """
                CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    UPDATE players SET note = upper(NEW.name) WHERE team IS NULL; RETURN NULL; END $$;
                CREATE TRIGGER shout AFTER INSERT ON teams FOR EACH ROW EXECUTE FUNCTION shout();
                INSERT INTO players VALUES (gen_random_uuid(), NULL, 'quiet');
                """)
        }
        try await waitUntil("the trigger is taken up") {
            try await ServedDatabase.metric(port, "martlet_tables_taken_up_total") ?? 0 > 0
        }
        try await ServedDatabase.add("Falcons", device)
        try await Self.sync(device)
        let notes = try await device.read { try $0.rows("SELECT note FROM players") }
        #expect(notes.map { $0["note"] } == [.text("FALCONS")])
        await device.close()
        await database.stop()
    }

    @Test("tables that join while servers run are taken up by all of them")
    func joining() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start("a")
        let other = try await database.start("b")
        let device = try await database.device("old", port)
        let listener = try await database.device("listener", other)
        listener.start()
        try await ServedDatabase.add("Falcons", device)
        try await device.sync()
        try await database.program { connection in
            try connection.execute(
                """
                CREATE TABLE coaches (id bigserial PRIMARY KEY, team bigint REFERENCES teams, name text);
                INSERT INTO coaches (team, name) VALUES (1, 'Ann');
                """)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "team", tables: ["coaches"]))
            try connection.execute("INSERT INTO coaches (team, name) VALUES (1, 'Bob')")
        }
        try await ServedDatabase.add("Owls", device)
        try await Self.sync(device)
        for port in [port, other] {
            try await waitUntil("the tables are taken up") {
                try await ServedDatabase.metric(port, "martlet_tables_taken_up_total") ?? 0 > 0
            }
        }
        try await ServedDatabase.add("Hawks", device)
        try await Self.sync(device)
        #expect(try await ServedDatabase.teams(device) == ["Falcons", "Hawks", "Owls"])
        // One who listens is told to come again, and misses nothing.
        try await waitUntil("the listener has everything") {
            try await ServedDatabase.teams(listener) == ["Falcons", "Hawks", "Owls"]
        }
        let new = try await database.device("new", other)
        try await new.sync()
        let coaches = try await new.read { try $0.rows("SELECT name FROM coaches ORDER BY id") }
        #expect(coaches.map { $0["name"] } == [.text("Ann"), .text("Bob")])
        for device in [device, listener, new] { await device.close() }
        await database.stop()
    }

    @Test("tables that cannot be taken up are told of, until they are corrected")
    func broken() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start { configuration in
            configuration.later = { _, work in
                DispatchQueue.global().asyncAfter(deadline: .now() + 0.05, execute: work)
            }
        }
        try await database.program { connection in
            try connection.execute("ALTER TABLE teams DROP CONSTRAINT teams_pkey CASCADE")
        }
        try await waitUntil("the server has tried") {
            try await ServedDatabase.metric(port, "martlet_tables_not_taken_up_total") ?? 0 > 1
        }
        try await waitUntil("the server is not ready") {
            try await ServedDatabase.get(port, "/readyz").status == 503
        }
        let changed = "martlet_tables_changed{data_set=\"team\"}"
        try await ServedDatabase.untilMetric(port, changed, is: 1)
        try await waitUntil("the log says why") {
            database.log.contains {
                $0.contains("cannot be taken up as they are now") && $0.contains("notReady")
            }
        }
        try await database.program { connection in
            try connection.execute(
                """
                ALTER TABLE teams ADD PRIMARY KEY (id);
                ALTER TABLE players ADD FOREIGN KEY (team) REFERENCES teams ON DELETE CASCADE
                """)
        }
        try await waitUntil("the server is ready") {
            try await ServedDatabase.get(port, "/readyz").status == 200
        }
        try await ServedDatabase.untilMetric(port, changed, is: 0)
        let device = try await database.device("new", port)
        try await ServedDatabase.add("Falcons", device)
        try await Self.sync(device)
        #expect(try await database.column("SELECT name FROM teams") == ["Falcons"])
        await device.close()
        await database.stop()
    }
}
