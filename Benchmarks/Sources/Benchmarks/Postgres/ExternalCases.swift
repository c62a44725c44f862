import CLoad
import Foundation
import Martlet

/// What other programs write: how soon a device has it, and what noting it costs them.
enum ExternalCases {
    static func run() async throws {
        let servers = try PostgresServers(count: 1)
        defer { servers.stop() }
        try servers.advance(
            [LoadPlan(servers.pushes(devices: 0..<10, sets: 10, records: 1_000))], by: 100)
        try await reach(servers)
        try triggers(servers)
    }

    /// From the moment a statement is sent to the moment a listening device shows what it changed.
    private static func reach(_ servers: PostgresServers) async throws {
        let client = try await MartletClient.open(
            path: servers.folder.appendingPathComponent("device.sqlite").path,
            schema: Organisation.schema,
            server: URL(string: "http://127.0.0.1:\(servers.processes[0].port)"),
            token: ServerRole.token)
        try await client.sync()
        client.setPullPolicy(.live(pollingEvery: .seconds(30)))
        client.start()
        while try await client.status().connection != .live {
            try await Task.sleep(for: .milliseconds(10))
        }
        let session = try SQLSession(servers.url)
        for (rows, expected) in [(1, "250 ms"), (1_000, "500 ms")] {
            var samples: [Double] = []
            for sample in 0..<21 {
                let shirt = 1_000 + sample * 10 + (rows == 1 ? 0 : 1)
                let start = ContinuousClock.now
                try session.run(
                    """
                    UPDATE players SET shirt = \(shirt)
                    WHERE id IN (SELECT id FROM players ORDER BY id LIMIT \(rows));
                    """)
                while true {
                    let count = try await client.read {
                        try $0.rows(
                            "SELECT count(*) AS n FROM players WHERE shirt = \(shirt)"
                        ).first?["n"]
                    }
                    if count == .integer(Int64(rows)) { break }
                    guard ContinuousClock.now - start < .seconds(30) else {
                        throw BenchmarkFailure("An UPDATE did not reach the device in 30 s.")
                    }
                    try await Task.sleep(for: .milliseconds(1))
                }
                samples.append((ContinuousClock.now - start) / .milliseconds(1))
                // So that the statements do not all meet the same moment of the server's rounds.
                try await Task.sleep(for: .milliseconds(100 + sample * 13))
            }
            try Measurement(
                "postgres/an UPDATE of \(rows) rows until a listening device shows it", unit: "ms",
                samples: samples, expected: expected
            ).report()
            try Measurement(
                "postgres/an UPDATE of \(rows) rows until a listening device shows it, longest",
                unit: "ms", samples: [samples.max() ?? 0], expected: expected
            ).report()
        }
        session.stop()
        await client.close()
    }

    /// CPU of the database's process for a row written, with the triggers and without, in pairs.
    private static func triggers(_ servers: PostgresServers) throws {
        let rows = 5_000
        let session = try SQLSession(servers.url)
        defer { session.stop() }
        func cost(_ statement: String, noted: Bool) throws -> Double {
            try session.run("BEGIN;")
            if !noted { try session.run("ALTER TABLE players DISABLE TRIGGER USER;") }
            let before = process_seconds(session.backend)
            try session.run(statement)
            let seconds = process_seconds(session.backend) - before
            try session.run("ROLLBACK;")
            return seconds / Double(rows) * 1e6
        }
        let works = [
            (
                "one UPDATE of \(rows) rows",
                """
                UPDATE players SET shirt = shirt + 1
                WHERE id IN (SELECT id FROM players ORDER BY id LIMIT \(rows));
                """
            ),
            (
                "\(rows) UPDATEs of one row",
                """
                DO $$ DECLARE r bigint; BEGIN
                    FOR r IN SELECT id FROM players ORDER BY id LIMIT \(rows) LOOP
                        UPDATE players SET shirt = shirt + 1 WHERE id = r;
                    END LOOP; END $$;
                """
            ),
        ]
        for (name, statement) in works {
            var with: [Double] = []
            var extra: [Double] = []
            for sample in 0...7 {
                let bare = try cost(statement, noted: false)
                let noted = try cost(statement, noted: true)
                if sample > 0 {
                    with.append(noted)
                    extra.append(noted - bare)
                }
            }
            try Measurement(
                "postgres/\(name): CPU with triggers", unit: "µs/row", samples: with
            ).report()
            try Measurement(
                "postgres/\(name): CPU of the triggers", unit: "µs/row",
                samples: extra, expected: "40 µs"
            ).report()
        }
    }
}
