import Foundation
import Martlet
import MartletPostgres
import MartletServer
import PostgresKit
import TestDatabases
import Testing
import Waiting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(
    "A data set in PostgreSQL with policies: tables that other programs change",
    .timeLimit(.minutes(3)))
struct PolicyTableTests {
    private static let rules: @Sendable (inout ServerConfiguration) -> Void = {
        $0.rules = Array(
            """
            CREATE POLICY every ON teams USING (name <> 'x');
            CREATE POLICY open ON players USING (note <> 'top' AND state = 'open');
            """.utf8)
    }

    /// Makes a data set whose players are for devices if they are open and not top.
    private static func database(_ capture: ExternalCapture) async throws -> ServedDatabase {
        let database = try await ServedDatabase(
            capture == .logical ? .logical() : .shared(), dataSet: nil)
        try await ServedDatabase.blocking {
            let connection = try PostgresConnection(
                database.address, PostgresOptions(statement: nil, lock: nil))
            _ = try PostgresInit(on: connection, now: 0).make(
                """
                CREATE TYPE st AS ENUM ('open', 'closed');
                \(ServedDatabase.script)
                ALTER TABLE players ADD state st DEFAULT 'open', ADD other text;
                INSERT INTO players (id, note, state, other) VALUES
                    (gen_random_uuid(), 'free', 'open', 'free 1'), (gen_random_uuid(), 'free', 'closed', 'free 2'),
                    (gen_random_uuid(), 'top', 'open', 'HIDDEN');
                """, name: "team")
            if capture == .logical { _ = try CaptureSwitch(on: connection).change(to: .logical) }
        }
        return database
    }

    private static func release(_ database: ServedDatabase) async throws {
        await database.stop()
        try await database.program { connection in
            _ = try PostgresRelease(on: connection).release(name: nil, dropsSurrogates: false)
        }
    }

    private static func players(_ device: MartletClient) async throws -> [String] {
        try await device.read { context in
            try context.rows("SELECT other FROM players ORDER BY other").compactMap {
                guard case .text(let name)? = $0["other"] else { return nil }
                return name
            }
        }
    }

    /// Waits until a device that comes back, and new ones, have these players.
    private static func until(
        _ names: [String], _ device: MartletClient, _ database: ServedDatabase, _ port: Int
    ) async throws {
        try await waitUntil("the device has \(names)") {
            _ = try? await device.sync()
            return try await players(device) == names
        }
        let new = try await database.device(UUID().uuidString, port)
        try await waitUntil("a new device has \(names)") {
            (try? await new.sync()) != nil
        }
        #expect(try await players(new) == names)
        await new.close()
    }

    @Test(
        "values that ALTER TABLE changes make records enter and leave views",
        arguments: [ExternalCapture.triggers, .logical])
    func values(capture: ExternalCapture) async throws {
        let database = try await Self.database(capture)
        let port = try await database.start("a", Self.rules)
        let device = try await database.device("old", port)
        try await Self.until(["free 1"], device, database, port)
        for (sql, names) in [
            ("ALTER TABLE players ALTER note TYPE text USING 'top'", []),
            ("ALTER TABLE players ALTER note TYPE text USING 'free'", ["HIDDEN", "free 1"]),
            (
                """
                ALTER TYPE st RENAME VALUE 'open' TO 'x'; ALTER TYPE st RENAME VALUE 'closed' TO 'open';
                ALTER TYPE st RENAME VALUE 'x' TO 'closed'
                """, ["free 2"]
            ),
            (
                "BEGIN; ALTER TABLE players DROP note; ALTER TABLE players ADD note text DEFAULT 'top'; COMMIT",
                []
            ),
            (
                "BEGIN; ALTER TABLE players DROP note; ALTER TABLE players ADD note text DEFAULT 'low'; COMMIT",
                ["free 2"]
            ),
        ] {
            try await database.program { try $0.execute(sql) }
            try await Self.until(names, device, database, port)
        }
        // A server that was not there does the same.
        await database.stop()
        try await database.program {
            try $0.execute("ALTER TABLE players ALTER note TYPE varchar(9) USING 'top'")
        }
        let other = try await database.start("b", Self.rules)
        let late = try await database.device("old", other)
        try await Self.until([], late, database, other)
        await device.close()
        await late.close()
        try await Self.release(database)
    }

    /// Returns the status of a request with the device's token.
    private static func status(
        _ port: Int, _ path: String, _ body: String? = nil, isStream: Bool = false
    ) async throws -> Int {
        guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else {
            throw URLError(.badURL)
        }
        var request = URLRequest(url: url)
        request.setValue("Bearer \(ServedDatabase.token)", forHTTPHeaderField: "Authorization")
        if isStream { request.setValue("text/event-stream", forHTTPHeaderField: "Accept") }
        if let body {
            request.httpMethod = "POST"
            request.httpBody = Data(body.utf8)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        let (data, response) = try await URLSession.shared.data(for: request)
        #expect(!String(decoding: data, as: UTF8.self).contains("HIDDEN"), "\(path)")
        return (response as? HTTPURLResponse)?.statusCode ?? 0
    }

    private static let exchange = """
        BEGIN; ALTER TABLE players RENAME note TO x; ALTER TABLE players RENAME other TO note;
        ALTER TABLE players RENAME x TO other; COMMIT
        """

    @Test(
        "nobody is answered, by whatever way, while the tables are not as policies need them",
        arguments: [
            exchange, "ALTER TABLE players RENAME note TO x", "ALTER TABLE players DROP note",
            "ALTER TABLE players RENAME note TO y; ALTER TABLE players RENAME other TO note",
            "ALTER TABLE players ALTER note TYPE json USING to_json(note)",
            """
            BEGIN; CREATE TABLE x (LIKE players INCLUDING ALL);
            INSERT INTO x (id, note, state, other) VALUES (gen_random_uuid(), 'free', 'open', 'HIDDEN');
            DROP TABLE players; ALTER TABLE x RENAME TO players; COMMIT
            """,
        ])
    func closed(change: String) async throws {
        let database = try await Self.database(.triggers)
        let port = try await database.start("a", Self.rules)
        let device = try await database.device("old", port)
        try await device.sync()
        let listening = Task { try? await Self.status(port, "/deltas?since=0", isStream: true) }
        defer { listening.cancel() }
        try await ServedDatabase.untilMetric(port, "martlet_streams", is: 1)
        try await database.program { try $0.execute(change) }
        // Before the server has noticed, nobody gets a hidden row.
        let sync = #"{"maxRevision":0,"changeSets":[]}"#
        try await waitUntil("the server is not ready") {
            _ = try await Self.status(port, "/sync", sync)
            return try await ServedDatabase.get(port, "/readyz").status == 503
        }
        try await waitUntil("the server has tried to take the tables up") {
            try await ServedDatabase.metric(port, "martlet_tables_not_taken_up_total") ?? 0 > 0
        }
        try await database.program { connection in
            _ = try? connection.execute("UPDATE players SET other = other || '+'")
            _ = try? connection.execute("UPDATE players SET note = note || '+'")
        }
        for path in ["/sync", "/sync?upload=u&from=0&total=\(sync.utf8.count)"] {
            #expect(try await Self.status(port, path, sync) == 503, "\(path)")
        }
        for path in [
            "/deltas?since=0", "/deltas?since=0&rows=1", "/snapshot?client=old", "/schema",
        ] {
            #expect(try await Self.status(port, path) == 503, "\(path)")
        }
        try await ServedDatabase.untilMetric(port, "martlet_streams", is: 0)
        await #expect(throws: (any Error).self) { try await device.sync() }
        #expect(try await Self.players(device) == ["free 1"])
        await device.close()
        await database.stop()
    }
}
