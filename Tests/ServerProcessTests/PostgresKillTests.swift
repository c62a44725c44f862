import Foundation
import Martlet
import PostgresKit
import TestDatabases
import TestPrograms
import Testing

/// Two real server programs on one PostgreSQL database, killed with SIGKILL while real devices
/// write; PostgreSQL itself is cut off in the middle of commits.
@Suite("Servers on PostgreSQL that are killed", .timeLimit(KillCount.limit(minutes: 10)))
struct PostgresKillTests {
    private static let serverKills = KillCount.kills(25)
    private static let databaseStops = serverKills * 2 / 5
    private static let writers = 6

    @Test(
        "25 kills of servers, 10 immediate shutdowns: 0 lost, 0 double, no gap, every replica whole"
    )
    func nothingIsLost() async throws {
        let databases = try await DatabaseServers.start()
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-postgres-kill-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await Self.makeDataSet(databases.postgresURL, folder)
        var servers: [ServerProcess] = []
        for _ in 1...2 {
            let server = try ServerProcess(
                postgres: databases.postgresURL, redis: databases.redisURL)
            try await server.start()
            servers.append(server)
        }
        var clients: [MartletClient] = []
        for writer in 0..<Self.writers {
            clients.append(
                try await servers[writer % 2].client(
                    "writer-\(writer)", in: folder))
        }
        let saved = try await run(servers, databases, clients)
        print(
            """
            \(Self.serverKills) kills of servers on PostgreSQL, \(Self.databaseStops) shutdowns of \
            it, \(saved.count) change sets saved
            """)
        try await ServerKillTests.check(
            try await servers[0].address, clients, saved: saved, servers: servers)
        try await Self.checkTables(databases.postgresURL, saved: saved)
        for server in servers { #expect(await server.stop() == 0) }
    }

    /// Lets everybody write while servers and the database are killed.
    private func run(
        _ servers: [ServerProcess], _ databases: DatabaseServers, _ clients: [MartletClient]
    ) async throws -> [ServerAccount.Mark] {
        let accepted = Milestones()
        let isOver = Milestones()
        return try await withThrowingTaskGroup(of: [ServerAccount.Mark].self) { group in
            for (writer, client) in clients.enumerated() {
                group.addTask {
                    try await ServerKillTests.write(client, Int64(writer), accepted) {
                        isOver.count > 0
                    }
                }
            }
            group.addTask {
                defer { isOver.add() }
                try await Self.kill(servers, databases, accepted)
                return []
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Each kill comes after some more sets were accepted; those of the database between those of
    /// the servers.
    private static func kill(
        _ servers: [ServerProcess], _ databases: DatabaseServers, _ accepted: Milestones
    ) async throws {
        var stops = 0
        for kill in 1...serverKills {
            try await accepted.wait(for: accepted.count + Int.random(in: 5...60))
            let server = servers[Int.random(in: 0..<servers.count)]
            await server.kill()
            try await server.start()
            guard stops * serverKills < kill * databaseStops else { continue }
            stops += 1
            try await accepted.wait(for: accepted.count + Int.random(in: 5...60))
            try await databases.order("postgres stop immediate")
            try await databases.order("postgres start")
        }
        #expect(stops == databaseStops)
        // Otherwise nothing shows that they came back from the last one.
        try await accepted.wait(for: accepted.count + 20)
    }

    private static func makeDataSet(_ url: String, _ folder: URL) async throws {
        let schema = folder.appendingPathComponent("postgres.sql")
        try Data(ServerProcess.postgresSchema.utf8).write(to: schema)
        let command = try RunningProgram(
            RunningProgram.path("martlet", override: "MARTLET_EXECUTABLE"),
            ["postgres", "init", "--postgres", url, "--name", "league", "--schema", schema.path],
            log: folder.appendingPathComponent("init.log"))
        #expect(await command.end() == 0)
    }

    /// What an analyst sees.
    private static func checkTables(_ url: String, saved: [ServerAccount.Mark]) async throws {
        let connection = try PostgresConnection(PostgresAddress(url))
        defer { connection.close() }
        let counts = try connection.query(
            """
            SELECT (SELECT count(*) FROM marks), (SELECT count(DISTINCT (writer, number)) FROM marks),
                (SELECT count(*) FROM notes JOIN marks ON marks.id = mark
                    WHERE marks.number = notes.number),
                (SELECT revision FROM _martlet.dataset)
            """)
        for column in 0..<4 {
            #expect(try counts.integer(0, column) == Int64(saved.count))
        }
    }
}
