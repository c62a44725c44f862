import Foundation
import MartletModel
import PostgresKit
import Synchronization

/// Two servers on one PostgreSQL database with Redis, and programs that write plain SQL to the
/// database.
final class PostgresBackEnd: DemoBackEnd {
    private let databases: Databases
    private let servers: [ServerProcess]
    private let folder: DemoFolder
    private let address: PostgresAddress
    private let writers: [SQLWriter]
    private let events = Mutex<[String]>([])
    private let hasFailed = Mutex(false)

    private init(
        databases: Databases, servers: [ServerProcess], folder: DemoFolder,
        address: PostgresAddress, writers: [SQLWriter]
    ) {
        self.databases = databases
        self.servers = servers
        self.folder = folder
        self.address = address
        self.writers = writers
    }

    /// Starts the databases, makes the data set, and starts two servers on it.
    static func start(
        _ options: DemoOptions, program databasesProgram: String, _ serving: [String],
        _ folder: DemoFolder
    ) async throws -> PostgresBackEnd {
        let databases = try await Databases.start(databasesProgram)
        var servers: [ServerProcess] = []
        do {
            let script = folder.path + "/postgres.sql"
            try Data(OrganisationSchema.postgres.utf8).write(to: URL(fileURLWithPath: script))
            try await ServerProcess.run(
                options.program,
                [
                    "postgres", "init", "--postgres", databases.postgresURL, "--name", "demo",
                    "--schema", script,
                ])
            for number in 1...2 {
                servers.append(
                    try await ServerProcess.start(
                        options.program,
                        [
                            "--postgres", databases.postgresURL, "--redis", databases.redisURL,
                            "--token", "demo:\(folder.token)", "--port", "0",
                        ] + serving, folder: folder.path, name: "server-\(number)"))
            }
            let address = try PostgresAddress(databases.postgresURL)
            let writers: [SQLWriter] = [
                SQLWriter(address, name: "web", tag: folder.tag, seed: options.seed),
                SQLWriter(address, name: "analyst", tag: folder.tag, seed: options.seed &+ 1),
            ]
            return PostgresBackEnd(
                databases: databases, servers: servers, folder: folder, address: address,
                writers: writers)
        } catch {
            for server in servers { await server.stop() }
            await databases.stop()
            throw error
        }
    }

    func address(of device: Int) -> URL { servers[device % servers.count].address }

    var isRunning: Bool { servers.allSatisfy(\.isRunning) }

    var isCalm: Bool { hasFailed.withLock(\.self) }

    var others: OtherMarks {
        var all = OtherMarks()
        for writer in writers {
            let marks = writer.marks
            all.confirmed += marks.confirmed
            all.unknown += marks.unknown
        }
        return all
    }

    var story: String? {
        let rows = writers.reduce(0) { $0 + $1.rowsWritten }
        return
            "two servers; \(others.confirmed.count) transactions of other programs with \(rows) rows; "
            + events.withLock(\.self).joined(separator: ", ")
    }

    var dataOptions: [String] { ["--postgres", databases.postgresURL] }

    var watched: [WatchedProcesses] {
        let processes = servers.map(\.identifier)
        let each = processes.enumerated().map { number, process in
            WatchedProcesses(name: "server \(number + 1)", judged: [.memory, .threads]) {
                [process]
            }
        }
        // At times, many devices of one server are disconnected and few of the other's.
        let all = WatchedProcesses(name: "servers", judged: [.descriptors]) { processes }
        return each + [all] + databases.watched
    }

    func disturb(until isOver: @escaping @Sendable () -> Bool) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in writers { group.addTask { try await writer.run(until: isOver) } }
            group.addTask { try await self.fail() }
            try await group.waitForAll()
        }
    }

    /// Kills Redis twice, and restarts PostgreSQL once.
    private func fail() async throws {
        let steps: [(order: String, pause: Duration)] = [
            ("redis kill", .seconds(1)), ("redis start", .seconds(2)),
            ("postgres stop fast", .milliseconds(500)), ("postgres start", .seconds(2)),
            ("redis kill", .seconds(1)), ("redis start", .zero),
        ]
        defer { hasFailed.withLock { $0 = true } }
        try await Task.sleep(for: .seconds(2))
        for step in steps {
            try await databases.order(step.order)
            if !step.order.hasSuffix("start") { events.withLock { $0.append(step.order) } }
            try await Task.sleep(for: step.pause)
        }
    }

    func awaitLog() async throws {
        let connection = try PostgresConnection(address)
        defer { connection.close() }
        for _ in 0..<600 {
            let waiting = try connection.query("SELECT count(*) FROM _martlet.foreign_changes")
            if try waiting.integer(0, 0) == 0 { return }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw DemoError("After 30 s the servers have not taken what other programs wrote.")
    }

    func tables(_ schema: Schema) throws -> String {
        let connection = try PostgresConnection(address)
        defer { connection.close() }
        return try TableMirror(connection, schema).write(
            to: folder.path + "/tables.sqlite", script: OrganisationSchema.script)
    }

    func stop() async {
        for server in servers { await server.stop() }
        await databases.stop()
    }
}
