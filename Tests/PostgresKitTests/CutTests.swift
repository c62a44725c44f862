import ConnectionKit
import PostgresKit
import Synchronization
import TestDatabases
import Testing

/// What a client did until it failed, and what it believes.
private enum Belief: Equatable {
    case committed
    case nothing(PostgresError.Kind)
    case unknown
}

@Suite("A connection cut at every step")
struct CutTests {
    /// Opens, prepares, inserts under a savepoint, commits: a row of its own for each number.
    private static func work(_ address: PostgresAddress, _ table: String, _ number: Int) -> Belief {
        do {
            let connection = try PostgresConnection(address)
            try connection.transaction {
                try connection.savepoint {
                    _ = try connection.query(
                        "INSERT INTO \(table) VALUES ($1) RETURNING n", [.integer(Int64(number))])
                }
            }
            return .committed
        } catch let error as PostgresError {
            return error.kind == .unknownOutcome ? .unknown : .nothing(error.kind)
        } catch {
            return .nothing(.other)
        }
    }

    /// Where messages of the server end. The first is the one byte that refuses or grants TLS.
    private static func boundaries(_ bytes: [UInt8]) -> [Int] {
        var ends: [Int] = []
        var position = 0
        while position + 5 <= bytes.count {
            let length = bytes[(position + 1)..<(position + 5)].reduce(0) { $0 << 8 | Int($1) }
            position += 1 + length
            ends.append(position)
        }
        return ends
    }

    private static func isStored(_ connection: PostgresConnection, _ table: String, _ number: Int)
        throws -> Bool
    {
        try connection.query(
            "SELECT count(*) FROM \(table) WHERE n = $1", [.integer(Int64(number))]
        ).integer(0, 0) == 1
    }

    @Test("never believes what is not so", .timeLimit(.minutes(2)))
    func everyStep() async throws {
        let servers = try await DatabaseServers.shared()
        let proxy = try CuttingProxy(to: servers.postgresPort)
        let address = try await TestServer.address(through: proxy).setting("sslmode", "disable")
        let table = TestServer.name("cut")
        try await TestServer.connected { try $0.execute("CREATE TABLE \(table) (n bigint)") }

        let whole = try await TestServer.blocking { Self.work(address, table, 0) }
        #expect(whole == .committed)
        let fromServer = proxy.fromServer
        let fromClient = proxy.fromClient.count
        let ends = Self.boundaries(fromServer)
        #expect(ends.last == fromServer.count)
        // Behind each message, and inside it; and a look at everything the client says.
        var plans = ends.dropLast().flatMap { end in
            [CuttingProxy.Plan(fromServer: end), CuttingProxy.Plan(fromServer: end - 1)]
        }
        plans += stride(from: 1, to: fromClient, by: 31).map { CuttingProxy.Plan(fromClient: $0) }

        var wrong: [String] = []
        var seen: Set<String> = []
        for (index, plan) in plans.enumerated() {
            proxy.plan(plan)
            let belief = try await TestServer.blocking { Self.work(address, table, index + 1) }
            let isStored = try await stored(table, index + 1)
            switch belief {
            case .committed where !isStored: wrong.append("\(plan): committed, but it is not there")
            case .nothing(let kind) where isStored:
                wrong.append("\(plan): \(kind), but it is there")
            default: break
            }
            seen.insert("\(belief), \(isStored)")
        }
        #expect(wrong == [])
        // All that can happen did: otherwise the cuts were not where they should be.
        #expect(seen.contains("unknown, true"))
        #expect(seen.contains("unknown, false"))
        #expect(seen.contains { $0.hasPrefix("nothing") && $0.hasSuffix("false") })
        try await TestServer.connected { try $0.execute("DROP TABLE \(table)") }
    }

    /// Whether a row is there once the server has noticed that its client is gone.
    private func stored(_ table: String, _ number: Int) async throws -> Bool {
        try await TestServer.connected { connection in
            // Whoever still holds a row holds the table; this waits for them.
            try connection.transaction {
                try connection.execute("LOCK TABLE \(table) IN SHARE MODE")
                return try Self.isStored(connection, table, number)
            }
        }
    }

    @Test("a server that falls silent is given up, whatever was under way")
    func silenceOfPostgres() async throws {
        let servers = try await DatabaseServers.shared()
        let proxy = try CuttingProxy(to: servers.postgresPort)
        let address = try await TestServer.address(through: proxy).setting("sslmode", "disable")
        let kinds = try await TestServer.blocking {
            let options = PostgresOptions(answer: .seconds(2))
            _ = try PostgresConnection(address, options).query("SELECT 1")
            let length = proxy.fromServer.count
            return try [false, true].map { isInTransaction in
                proxy.plan(.init(fromServer: length, isSilent: true))
                let error = try TestServer.error {
                    let connection = try PostgresConnection(address, options)
                    if isInTransaction { try connection.begin() }
                    for _ in 0..<10 { _ = try connection.query("SELECT 1") }
                }
                return error.kind
            }
        }
        #expect(kinds == [.unknownOutcome, .lost])
    }
}

@Suite("PostgreSQL restarted", .serialized)
struct RestartTests {
    @Test("a session lives through stops of every kind", .timeLimit(.minutes(2)))
    func restarts() async throws {
        let servers = try await DatabaseServers.start(["--postgres"])
        let address = try PostgresAddress(servers.postgresURL)
        let session = PostgresSession(
            label: "test", backoff: Backoff(first: .milliseconds(5), limit: .milliseconds(50)),
            patience: .seconds(60)
        ) { try PostgresConnection(address) }
        try await session.run { try $0.execute("CREATE TABLE numbers (n integer)") }
        for (number, order) in ["stop fast", "stop immediate", "kill"].enumerated() {
            try await session.run { connection in
                _ = try connection.query(
                    "INSERT INTO numbers VALUES ($1)", [.integer(Int64(number))])
            }
            try await servers.order("postgres \(order)")
            // Nobody is there: the error says so, and that it may pass.
            let alone = PostgresSession(label: "test", patience: .zero) {
                try PostgresConnection(address)
            }
            let refused = await #expect(throws: PostgresError.self) {
                try await alone.run { $0.processNumber }
            }
            #expect(refused?.mayPass == true)
            // Work that comes meanwhile waits for the server.
            async let waiting = Self.count(session)
            try await servers.order("postgres start")
            #expect(try await waiting == Int64(number + 1))
        }
    }

    /// Reading can be repeated. After a SIGKILL the server's processes live on for a moment, and end
    /// under the work.
    private static func count(_ session: PostgresSession) async throws -> Int64 {
        while true {
            do {
                return try await session.run { connection in
                    try connection.query("SELECT count(*) FROM numbers").integer(0, 0)
                }
            } catch let error as PostgresError where error.endsConnection {
                continue
            }
        }
    }
}
