import Foundation
import MartletServer
import PostgresKit
import TestDatabases
import Testing

@testable import MartletCommand
@testable import MartletPostgres

@Suite("Backups of a data set that reads the write-ahead log")
struct LogicalBackupTests {
    /// Makes a database.
    /// - Returns: Its address.
    private static func database() async throws -> String {
        let shared = try await DatabaseServers.logical().postgresURL
        let name = "b_" + UUID().uuidString.replacing("-", with: "").lowercased()
        try await on(shared) { try $0.execute("CREATE DATABASE \(name)") }
        var parts = try #require(URLComponents(string: shared))
        parts.path = "/" + name
        return parts.string ?? ""
    }

    /// Runs `body` with a connection, off the cooperative pool.
    private static func on<Answer: Sendable>(
        _ url: String, _ body: @escaping @Sendable (PostgresConnection) throws -> Answer
    ) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result { try body(try PostgresConnection(PostgresAddress(url))) })
            }
        }
    }

    /// Makes a data set with rows.
    private static func served() async throws -> (ServedData, String) {
        let served = try ServedData()
        let url = try await database()
        let schema = served.path("schema.sql")
        try ServedData.postgresSchema.write(toFile: schema, atomically: true, encoding: .utf8)
        let made = await ServedData.run([
            "postgres", "init", "--postgres", url, "--name", "team", "--schema", schema, "--cdc",
            "logical",
        ])
        #expect(made.code == .done, "\(made.err)")
        try await on(url) {
            try $0.execute(
                "INSERT INTO teams (name) SELECT 'team ' || n FROM generate_series(1, 500) AS n")
        }
        served.use(postgres: url)
        return (served, url)
    }

    @Test("need a server; a restored data set knows which rows are the backup's")
    func restoredDataSet() async throws {
        let (served, url) = try await Self.served()
        let backup = served.path("team.backup")
        let words = ["backup", "--postgres", url, "--out", backup]
        let alone = await ServedData.run(words)
        #expect(alone.code == .failed)
        #expect(alone.err.contains("needs a server that runs"))
        try await served.start()
        let done = await ServedData.run(words)
        #expect(done.code == .done, "\(done.err)")
        await served.stop()

        let copy = try await Self.database()
        let restore = ["restore", "--postgres", copy, "--in", backup]
        let restored = await ServedData.run(restore)
        #expect(restored.code == .done, "\(restored.err)")
        try await Self.on(copy) { connection in
            let state = try #require(try LogicalState.read(connection))
            #expect(state.position == nil)
            let tables = try PostgresSchema.read(connection).tables
            let lines = try LogicalPublication(state.publication, on: connection).lines(of: tables)
            #expect(!lines.isEmpty && lines.allSatisfy { !$0.isOwed })
            try connection.execute("UPDATE teams SET name = 'later' WHERE id = 7")
            let rows = try connection.query("SELECT xmin::text::bigint, name FROM teams")
            for row in 0..<rows.count {
                let isRead = LogicalState.isRead(try rows.integer(row, 0), horizon: state.horizon)
                #expect(try isRead == (rows.text(row, 1) != "later"))
            }
            // As pg_restore leaves it.
            try connection.execute("UPDATE _martlet.dataset SET home = '1/1'")
        }
        let again = await ServedData.run(restore)
        #expect(again.code == .failed)
        #expect(again.err.contains("cut short"))
        let released = await ServedData.run(["postgres", "release", "--yes", "--postgres", url])
        #expect(released.code == .done, "\(released.err)")
    }

    @Test("pg_restore undoes what it did if the command that feeds it ends")
    func early() async throws {
        let (served, url) = try await Self.served()
        let backup = served.path("team.dump")
        let tools = PostgresTools(address: try PostgresAddress(url))
        try tools.run("pg_dump", ["--format=custom", "--file=\(backup)"])
        let copy = try await Self.database()
        let name = try #require(URLComponents(string: copy)?.path.dropFirst())
        let words = ["--dbname=\(name)", "--single-transaction", "--exit-on-error", "--no-owner"]
        let whole = try Data(contentsOf: URL(fileURLWithPath: backup))
        let part = served.path("part.dump")
        for count in [whole.count / 2, whole.count - 1] {
            try whole.prefix(count).write(to: URL(fileURLWithPath: part))
            #expect(throws: CommandError.self) { try tools.run("pg_restore", words, input: part) }
            #expect(try PostgresRestoring.isEmpty(PostgresAddress(copy)))
        }
        try tools.run("pg_restore", words, input: backup)
        #expect(try await Self.on(copy) { try $0.query("SELECT 1 FROM teams").count } == 500)
        _ = await ServedData.run(["postgres", "release", "--yes", "--postgres", url])
    }
}
