import Foundation
import Martlet
import MartletDevice
import MartletServer
import PostgresKit
import TestDatabases
import Testing
import Waiting

@Suite("A data set in PostgreSQL, served", .timeLimit(.minutes(3)))
struct ServingTests {
    @Test("devices write, listen and read; the tables show it")
    func exchangeWithPostgres() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start()
        let writer = try await database.device("writer", port)
        let listener = try await database.device("listener", port)
        listener.start()
        try await ServedDatabase.add("Falcons", writer)
        try await writer.sync()
        try await waitUntil("the listener has it") {
            try await ServedDatabase.teams(listener) == ["Falcons"]
        }
        #expect(try await database.column("SELECT id::text FROM teams") == ["1"])
        try await waitUntil("it is ready") {
            try await ServedDatabase.get(port, "/readyz").status == 200
        }
        for client in [writer, listener] { await client.close() }
        await database.stop()
    }

    @Test("what other programs write comes to devices, and theirs to them")
    func otherPrograms() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start()
        let device = try await database.device("device", port)
        device.start()
        try await database.program { connection in
            try connection.execute(
                "INSERT INTO teams (name) SELECT 'team ' || n FROM generate_series(1, 100) AS n")
        }
        try await waitUntil("the device has all of one transaction") {
            try await ServedDatabase.teams(device).count == 100
        }
        #expect(try await device.status().revision == 1)
        try await ServedDatabase.untilMetric(port, "martlet_external_sets_total", is: 1)
        try await waitUntil("nothing waits") {
            try await ServedDatabase.metric(
                port, #"martlet_external_changes_waiting{data_set="team"}"#) == 0
        }
        await device.close()
        await database.stop()
    }

    @Test("two servers on one database: what one takes the other tells", arguments: [false, true])
    func two(hasRedis: Bool) async throws {
        let database = try await ServedDatabase()
        let redis = hasRedis ? database.servers.redisURL : nil
        let first = try await database.start("a", redis: redis)
        let second = try await database.start("b", redis: redis)
        let writer = try await database.device("writer", first)
        let listener = try await database.device("listener", second)
        let other = try await database.device("other", second)
        listener.start()
        for number in 1...20 {
            try await ServedDatabase.add("a \(number)", writer)
            try await writer.sync()
            try await ServedDatabase.add("b \(number)", other)
            try await other.sync()
        }
        try await waitUntil("the listener has all") {
            try await ServedDatabase.teams(listener).count == 40
        }
        // A pull may be answered by a server that is a moment behind the other.
        try await waitUntil("the writer has all") {
            try await writer.sync()
            return try await ServedDatabase.teams(writer).count == 40
        }
        #expect(
            try await database.column(
                "SELECT revision::text FROM _martlet.log AS l ORDER BY l.revision")
                == (1...40).map(String.init))
        if hasRedis {
            try await waitUntil("notices are told") {
                try await ServedDatabase.metric(first, "martlet_redis_notices_total") ?? 0 > 0
            }
        }
        for client in [writer, listener, other] { await client.close() }
        await database.stop()
    }

    @Test("a device that moves between servers is never told that it is ahead")
    func moves() async throws {
        let database = try await ServedDatabase()
        let ports = [try await database.start("a"), try await database.start("b")]
        var names: [String] = []
        for number in 1...20 {
            // The same device, each time at the other server, at once.
            let device = try await database.device("device", ports[number % 2])
            names.append("team \(number < 10 ? "0" : "")\(number)")
            try await ServedDatabase.add(names[number - 1], device)
            #expect(try await device.sync() == Int64(number))
            await device.close()
        }
        #expect(try await database.column("SELECT name FROM teams ORDER BY name") == names)
        #expect(!database.log.contains { $0.contains("revisionAhead") })
        await database.stop()
    }

    @Test("a device that the process has not met is served from Redis, not by the writer")
    func unknownDeviceFarBehind() async throws {
        let database = try await ServedDatabase()
        let redis = database.servers.redisURL
        let count = 1_100
        let first = try await database.start("a", redis: redis)
        try await database.program { connection in
            try connection.execute(
                """
                DO $$ BEGIN FOR n IN 1..\(count) LOOP
                INSERT INTO teams (name) VALUES ('team ' || n); COMMIT; END LOOP; END $$
                """)
        }
        try await waitUntil("all blocks are in Redis") {
            let stored = #"martlet_redis_blocks_total{outcome="stored"}"#
            return try await ServedDatabase.metric(first, stored) == 4
        }
        await database.stop()
        // Memory begins 512 entries before the newest; what is before them lies in three blocks.
        let second = try await database.start("b", redis: redis)
        let device = try await database.device("never met", second)
        #expect(try await device.sync() == Int64(count))
        #expect(try await ServedDatabase.teams(device).count == count)
        let taken = #"martlet_redis_blocks_total{outcome="hit"}"#
        // One more for the query whose data set the device's tables are.
        try await ServedDatabase.untilMetric(second, taken, is: 4)
        await device.close()
        await database.stop()
    }
}

@Suite("A database that cannot be served", .timeLimit(.minutes(3)))
struct RefusedDatabaseTests {
    /// What a server that is started on an address says.
    private func refusal(_ database: ServedDatabase, _ urls: [String]) async throws -> String {
        var configuration = try database.configuration("refused")
        configuration.postgres = urls
        do {
            _ = try await MartletServer(configuration).start()
        } catch let failure as ServerFailure {
            return failure.message
        }
        return "it was started"
    }

    @Test("is refused with a sentence that says what to do, and without passwords")
    func sentencesOfBadDatabases() async throws {
        let database = try await ServedDatabase()
        let good = database.url
        let password = try #require(good.split(separator: "@")[0].split(separator: ":").last)
        let bare = try await ServedDatabase(dataSet: nil)
        let role = "role_\(UInt32.random(in: 0 ... .max))"
        try await database.program { connection in
            try connection.execute(
                "CREATE ROLE \(role) LOGIN PASSWORD 'word'; GRANT USAGE ON SCHEMA _martlet TO \(role);"
                    + "GRANT SELECT ON ALL TABLES IN SCHEMA _martlet TO \(role)")
        }
        for (url, words) in [
            (good.replacing(password, with: "wrong"), "Check user and password"),
            (good.replacing("/served_", with: "/missing_"), "Create the database"),
            (
                good.replacing(":\(database.servers.postgresPort)/", with: ":1/"),
                "Check host and port"
            ),
            ("postgres:x", "Write the address as postgresql://"),
            (good + "?sslmode=verify-full&sslrootcert=/nowhere", "Check sslmode and sslrootcert"),
            (bare.url, "martlet postgres init"),
            (good.replacing("martlet:\(password)", with: "\(role):word"), "GRANT SELECT, INSERT"),
        ] {
            let sentence = try await refusal(database, [url])
            #expect(sentence.contains(words), "\(sentence)")
            #expect(!sentence.contains(password))
            #expect(!sentence.contains("\n"))
        }
    }

    @Test("is refused to a role from which row-level security hides rows, until it bypasses it")
    func sentenceOfHiddenRows() async throws {
        let database = try await ServedDatabase()
        let role = "role_\(UInt32.random(in: 0 ... .max))"
        let password = try #require(
            database.url.split(separator: "@")[0].split(separator: ":").last)
        try await database.program { connection in
            try connection.execute(
                """
                CREATE ROLE \(role) LOGIN PASSWORD 'word';
                GRANT USAGE ON SCHEMA _martlet TO \(role);
                GRANT ALL ON ALL TABLES IN SCHEMA _martlet, public TO \(role);
                GRANT ALL ON ALL SEQUENCES IN SCHEMA _martlet, public TO \(role);
                ALTER TABLE teams ENABLE ROW LEVEL SECURITY;
                CREATE POLICY visible ON teams USING (name <> 'x');
                """)
        }
        let url = database.url.replacing("martlet:\(password)", with: "\(role):word")
        let sentence = try await refusal(database, [url])
        #expect(sentence.contains("“teams” has row-level security, which the role “\(role)”"))
        #expect(sentence.contains("ALTER ROLE \"\(role)\" BYPASSRLS"), "\(sentence)")
        try await database.program { try $0.execute("ALTER ROLE \(role) BYPASSRLS") }
        let port = try await database.start("a") { $0.postgres = [url] }
        try await waitUntil("it is ready") {
            try await ServedDatabase.get(port, "/readyz").status == 200
        }
        await database.stop()
    }

    @Test("two with one name are refused together, and served under two names")
    func namesUsedTwice() async throws {
        let database = try await ServedDatabase()
        let other = try await ServedDatabase()
        let sentence = try await refusal(database, [database.url, other.url])
        #expect(sentence.contains("Two databases have a data set called “team”"))
        try await other.program {
            try $0.execute("UPDATE _martlet.dataset SET name = 'others'")
        }
        let second = other.url
        let port = try await database.start("a") { $0.postgres.append(second) }
        try await waitUntil("both are ready") {
            try await ServedDatabase.get(port, "/readyz").status == 200
        }
        await database.stop()
    }

    @Test("a token of a data set that is elsewhere is answered, not served")
    func elsewhereByToken() async throws {
        let database = try await ServedDatabase()
        let elsewhere = try FixedToken("elsewhere:\(ServedDatabase.token)")
        let port = try await database.start("a") {
            $0.tokens = [elsewhere]
        }
        let device = try await MartletClient.open(
            path: database.folder.appendingPathComponent("d.sqlite").path,
            schema: "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT)",
            server: .init(string: "http://127.0.0.1:\(port)"), token: ServedDatabase.token)
        try await ServedDatabase.add("kept", device)
        let error = await #expect(throws: SyncError.self) { try await device.sync() }
        #expect(error?.remedy == .wait)
        #expect(try await device.status().outbox == 1)
        await device.close()
        await database.stop()
    }
}
