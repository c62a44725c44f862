import Martlet
import MartletPostgres
import MartletServer
import PostgresKit
import Synchronization
import Testing
import Waiting

@Suite("A data set in PostgreSQL: snapshots and tables that change", .timeLimit(.minutes(3)))
struct TableChangeTests {
    @Test("a new device begins with a snapshot, and has what came after it")
    func snapshot() async throws {
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
    func columns() async throws {
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
        #expect(database.log.contains { $0.contains("has a new column “size”") })
        #expect(database.log.contains { $0.contains("called “athletes” now") })
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

    @Test("columns that change under a running server stop it from writing, not for long")
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
        try await device.sync()
        #expect(try await database.column("SELECT count(*)::text FROM teams") == ["2"])
        try await database.program { connection in
            try connection.execute("ALTER TABLE teams DROP COLUMN score")
        }
        try await ServedDatabase.add("Hawks", device)
        await #expect(throws: (any Error).self) { try await device.sync() }
        #expect(database.log.contains { $0.contains("restart the server") })
        await database.stop()
        _ = try await database.start("b") { $0.port = port }
        try await device.sync()
        #expect(
            try await database.column("SELECT name FROM teams ORDER BY id") == [
                "Falcons", "Owls", "Hawks",
            ])
        #expect(try await device.parked().isEmpty)
        await device.close()
        await database.stop()
    }

    @Test(
        "tables that join while servers run are taken up by a restart; nothing is written before that"
    )
    func joining() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start("a")
        let device = try await database.device("old", port)
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
        // A server that does not know the table would lose what others wrote to it.
        await #expect(throws: (any Error).self) { try await device.sync() }
        #expect(database.log.contains { $0.contains("restart the server") })
        await database.stop()
        _ = try await database.start("b") { $0.port = port }
        try await ServedDatabase.add("Hawks", device)
        try await device.sync()
        #expect(try await ServedDatabase.teams(device) == ["Falcons", "Hawks", "Owls"])
        let new = try await database.device("new", port)
        try await new.sync()
        let coaches = try await new.read { try $0.rows("SELECT name FROM coaches ORDER BY id") }
        #expect(coaches.map { $0["name"] } == [.text("Ann"), .text("Bob")])
        await device.close()
        await new.close()
        await database.stop()
    }
}
