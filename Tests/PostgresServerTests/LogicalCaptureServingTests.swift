import Foundation
import Martlet
import MartletPostgres
import PostgresKit
import TestDatabases
import Testing
import Waiting

@Suite("Servers whose replication slot does not send everything")
struct LogicalCaptureServingTests {
    private static func database() async throws -> ServedDatabase {
        let database = try await ServedDatabase(.logical())
        try await ServedDatabase.blocking {
            let connection = try PostgresConnection(
                database.address, PostgresOptions(statement: nil, lock: nil))
            _ = try CaptureSwitch(on: connection).change(to: .logical)
            try connection.execute(
                "INSERT INTO teams (name) SELECT 'team ' || n FROM generate_series(1, 9) AS n")
        }
        return database
    }

    private static func release(_ database: ServedDatabase) async throws {
        await database.stop()
        try await database.program { connection in
            _ = try PostgresRelease(on: connection).release(name: nil, dropsSurrogates: false)
        }
    }

    private static func until(_ names: [String], _ device: MartletClient) async throws {
        try await waitUntil("the device has \(names)") {
            try await ServedDatabase.teams(device) == names
        }
    }

    @Test("a running server mends the publication, and what was missed reaches devices")
    func publication() async throws {
        let database = try await Self.database()
        let port = try await database.start("a")
        let device = try await database.device("device", port)
        device.start()
        var names = (1...9).map { "team \($0)" }
        try await Self.until(names, device)
        let publication = PostgresConnection.quoted(
            try await database.column("SELECT publication FROM _martlet.capture")[0])
        for (index, statement) in [
            "ALTER PUBLICATION \(publication) DROP TABLE teams",
            "DROP PUBLICATION \(publication)",
        ].enumerated() {
            try await database.program { connection in
                try connection.execute(
                    """
                    \(statement); UPDATE teams SET name = 'team 1 \(index)' WHERE id = 1;
                    DELETE FROM teams WHERE id = \(9 - index)
                    """)
            }
            names[0] = "team 1 \(index)"
            names.removeLast()
            try await Self.until(names, device)
            try await waitUntil("the server is ready") {
                try await ServedDatabase.get(port, "/readyz").status == 200
            }
        }
        await device.close()
        try await Self.release(database)
    }

    @Test("a replica identity without the key is told of; deletions reach devices once it is right")
    func identity() async throws {
        let database = try await Self.database()
        let port = try await database.start("a")
        let device = try await database.device("device", port)
        device.start()
        var names = (1...9).map { "team \($0)" }
        try await Self.until(names, device)
        try await database.program { connection in
            try connection.execute(
                """
                CREATE UNIQUE INDEX named ON teams (name);
                ALTER TABLE teams REPLICA IDENTITY USING INDEX named
                """)
        }
        try await database.untilLogged("its replica identity lacks the key")
        try await waitUntil("the server says that it is limited") {
            try await ServedDatabase.get(port, "/readyz").body.contains(#""limited":1"#)
        }
        try await database.program { connection in
            try connection.execute(
                "DELETE FROM teams WHERE id = 9; UPDATE teams SET name = 'team 1 new' WHERE id = 1")
        }
        names[0] = "team 1 new"
        try await Self.until(names, device)
        try await database.program { connection in
            let findings = try PostgresDoctor(on: connection, now: 0).findings()
            #expect(findings.contains { $0.isError && $0.what.contains("lacks its key") })
            try connection.execute("ALTER TABLE teams REPLICA IDENTITY DEFAULT")
        }
        names.removeLast()
        try await Self.until(names, device)
        try await waitUntil("the server is not limited any more") {
            let answer = try await ServedDatabase.get(port, "/readyz")
            return answer.status == 200 && !answer.body.contains("limited")
        }
        await device.close()
        try await Self.release(database)
    }
}
