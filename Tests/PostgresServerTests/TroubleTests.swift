import ConnectionKit
import Foundation
import Martlet
import MartletPostgres
import MartletServer
import PostgresKit
import RedisKit
import TestDatabases
import Testing
import Waiting

@Suite("Servers whose databases are in trouble", .timeLimit(.minutes(5)))
struct TroubleTests {
    @Test("a log that went back is told of, with both revisions")
    func wentBack() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start()
        let device = try await database.device("a", port)
        for name in ["Falcons", "Owls"] {
            try await ServedDatabase.add(name, device)
            try await device.sync()
        }
        // The server has seen the end from which the log falls back.
        try await database.program { try $0.execute("INSERT INTO teams (name) VALUES ('Hawks')") }
        try await waitUntil("the row is in the log") {
            try await database.column("SELECT revision::text FROM _martlet.dataset") == ["3"]
        }
        try await device.sync()
        // A standby that lagged has this log.
        try await database.program { connection in
            try connection.execute(
                """
                BEGIN; SELECT FROM _martlet.dataset FOR UPDATE;
                DELETE FROM _martlet.log WHERE revision > 1;
                UPDATE _martlet.dataset SET revision = 1,
                    hash = (SELECT hash FROM _martlet.log WHERE revision = 1); COMMIT
                """)
        }
        try await waitUntil("it is told of") {
            database.log.contains {
                $0.contains("The log went back") && $0.contains(#""before":3"#)
                    && $0.contains(#""now":1"#)
            }
        }
        await device.close()
        await database.stop()
    }

    @Test("a table that another program keeps locked is told of, while all the rest is served")
    func lockedTableIsReported() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start()
        let released = DispatchSemaphore(value: 0)
        async let held: Void = database.program { connection in
            try connection.execute("BEGIN; LOCK TABLE players IN ACCESS EXCLUSIVE MODE")
            released.wait()
            try connection.execute("ROLLBACK")
        }
        defer { released.signal() }
        let good = #"{"status":"ok"}"#
        try await waitUntil("readiness says so") {
            let ready = try await ServedDatabase.get(port, "/readyz")
            #expect(ready.status == 200)
            return ready.body == #"{"status":"ok","limited":1}"#
        }
        try await ServedDatabase.untilMetric(
            port, #"martlet_tables_locked{data_set="team"}"#, is: 1)
        try await database.untilLogged(#""event":"locked","dataSet":"team","types":"players""#)
        #expect(try await ServedDatabase.get(port, "/healthz").body == good)
        released.signal()
        try await held
        try await waitUntil("it is over") {
            try await ServedDatabase.get(port, "/readyz").body == good
        }
        try await database.untilLogged("no longer locked")
        await database.stop()
    }

    @Test("a commit whose wait for a standby is cancelled is told of, and holds")
    func unreplicated() async throws {
        let database = try await ServedDatabase(try await DatabaseServers.start(["--postgres"]))
        let port = try await database.start()
        let device = try await database.device("a", port)
        device.start()
        // A standby that never comes.
        try await Self.set("SET synchronous_standby_names = 'nobody'", on: database)
        try await waitUntil("it is told of") {
            // Until PostgreSQL has read its settings, a commit waits for nobody.
            if try await device.status().outbox == 0 {
                try await ServedDatabase.add("Owls", device)
            }
            _ = try await database.column(
                """
                SELECT pg_cancel_backend(pid)::text FROM pg_stat_activity
                WHERE application_name = 'martlet writer' AND wait_event = 'SyncRep'
                """)
            return database.log.contains {
                $0.contains(#""event":"unreplicated","dataSet":"team""#)
            }
        }
        try await Self.set("RESET synchronous_standby_names", on: database)
        try await waitUntil("the device has its verdicts") {
            try await device.status().outbox == 0
        }
        #expect(try await device.parked().isEmpty)
        let count = try await ServedDatabase.teams(device).count
        #expect(try await database.column("SELECT count(*)::text FROM teams") == ["\(count)"])
        await device.close()
        await database.stop()
    }

    @Test("a commit that waits for a standby is told of while it waits")
    func waitingForStandby() async throws {
        let database = try await ServedDatabase(try await DatabaseServers.start(["--postgres"]))
        let port = try await database.start()
        let device = try await database.device("a", port)
        device.start()
        try await Self.set("SET synchronous_standby_names = 'nobody'", on: database)
        try await waitUntil("readiness says so") {
            // Until PostgreSQL has read its settings, a commit waits for nobody.
            if try await device.status().outbox == 0 {
                try await ServedDatabase.add("Owls", device)
            }
            return try await ServedDatabase.get(port, "/readyz").status == 503
        }
        let blocked = try await ServedDatabase.metric(
            port, #"martlet_writer_blocked_seconds{data_set="team"}"#)
        #expect(blocked ?? 0 >= 3)
        try await database.untilLogged("waits for its commit")
        let found = try await database.program { connection in
            try PostgresDoctor(on: connection, now: 0).findings()
        }
        #expect(found.contains { $0.isError && $0.what.contains("synchronous standby") })
        try await Self.set("RESET synchronous_standby_names", on: database)
        try await waitUntil("the server is ready, and the device has its verdicts") {
            let ready = try await ServedDatabase.get(port, "/readyz").status
            return try await device.status().outbox == 0 && ready == 200
        }
        #expect(
            try await ServedDatabase.metric(
                port, #"martlet_writer_blocked_seconds{data_set="team"}"#) == 0)
        await device.close()
        await database.stop()
    }

    private static func set(_ setting: String, on database: ServedDatabase) async throws {
        try await database.program { connection in
            try connection.execute("ALTER SYSTEM \(setting)")
            try connection.execute("SELECT pg_reload_conf()")
        }
    }

    @Test("what the database refuses of one device says nothing of what can be written")
    func refusedDeviceAlone() async throws {
        let database = try await ServedDatabase()
        let port = try await database.start()
        try await database.program { connection in
            try connection.execute(
                """
                ALTER TABLE _martlet.log
                    ADD CONSTRAINT no_owls CHECK (position('Owls'::bytea IN body) = 0)
                """)
        }
        let device = try await database.device("a", port)
        try await ServedDatabase.add("Owls", device)
        // The set is put off; the device gets all that it missed.
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.status().outbox == 1)
        try await database.untilLogged("no_owls")
        #expect(
            try await ServedDatabase.metric(
                port, #"martlet_writer_blocked_seconds{data_set="team"}"#) == 0)
        await device.close()
        await database.stop()
    }

    /// Two servers on one database, and devices that keep in step with one of them each.
    private struct Team: Sendable {
        let database: ServedDatabase
        let ports: [Int]
        let devices: [MartletClient]

        init(_ servers: DatabaseServers) async throws {
            database = try await ServedDatabase(servers)
            var ports: [Int] = []
            var devices: [MartletClient] = []
            for name in ["a", "b"] {
                let port = try await database.start(name, redis: servers.redisURL)
                ports.append(port)
                for number in 1...2 {
                    let device = try await database.device("\(name)\(number)", port)
                    device.start()
                    devices.append(device)
                }
            }
            self.ports = ports
            self.devices = devices
        }

        /// Has every device write so many sets, while `trouble` happens.
        func write(
            _ count: Int, _ round: String,
            during trouble: @escaping @Sendable () async throws -> Void
        ) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await trouble() }
                for (index, device) in devices.enumerated() {
                    group.addTask {
                        for number in 1...count {
                            try await ServedDatabase.add("\(round) \(index) \(number)", device)
                            // So that the trouble comes between them.
                            try await waitUntil("most is sent") {
                                try await device.status().outbox < 3
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }

        /// Waits until everything is everywhere, and each thing once.
        func converge(_ count: Int) async throws {
            try await waitUntil("all that was written is in the tables") {
                try await database.column("SELECT count(*)::text FROM teams") == ["\(count)"]
            }
            let names = try await database.column(
                "SELECT name FROM teams ORDER BY name COLLATE \"C\"")
            #expect(Set(names).count == count)
            for device in devices {
                try await waitUntil("every device has it") {
                    try await ServedDatabase.teams(device) == names
                }
                try await waitUntil("nothing waits to be sent") {
                    try await device.status().outbox == 0
                }
                #expect(try await device.parked().isEmpty)
            }
            #expect(
                try await database.column("SELECT revision::text FROM _martlet.dataset")
                    == ["\(count)"])
        }

        func end() async {
            for device in devices { await device.close() }
            await database.stop()
        }
    }

    @Test("Redis killed, empty, full of rubbish, stuck, or as it was once: devices notice nothing")
    func redis() async throws {
        let servers = try await DatabaseServers.start()
        let team = try await Team(servers)
        try await team.write(40, "killed") {
            try await servers.order("redis kill")
            try await servers.order("redis start")
            try await waitUntil("the servers listen again, and hear rubbish") {
                try await ServedDatabase.blocking { try Self.soil(servers.redisURL) }
            }
        }
        try await team.write(40, "stuck") {
            try await servers.order("redis pause")
            try await waitUntil("that was noticed") {
                try await ServedDatabase.metric(
                    team.ports[0], "martlet_redis_failures_total") ?? 0 > 0
            }
            try await servers.order("redis resume")
        }
        // The others have the block in memory, and Redis was away when it was complete: one with an
        // empty memory puts it.
        let reader = try await team.database.device(
            "reader", try await team.database.start("c", redis: servers.redisURL))
        try await reader.sync()
        await reader.close()
        try await waitUntil("Redis holds a block") {
            try await ServedDatabase.blocking { try !Self.blocks(servers.redisURL).isEmpty }
        }
        let before = try await ServedDatabase.blocking { try Self.blocks(servers.redisURL) }
        try await team.write(40, "flushed") {
            for _ in 1...10 {
                try await ServedDatabase.blocking { try Self.flush(servers.redisURL) }
            }
            try await ServedDatabase.blocking { try Self.flush(servers.redisURL, keeping: before) }
        }
        try await team.converge(480)
        // One who was not there reads the blocks, whatever they are.
        let late = try await team.database.device("late", team.ports[1])
        try await waitUntil("the late one has all") {
            try await late.sync()
            return try await ServedDatabase.teams(late).count == 480
        }
        await late.close()
        await team.end()
    }

    private static func connection(_ url: String) throws -> RedisConnection {
        try RedisConnection(
            try RedisAddress(url), RedisOptions(connecting: .seconds(30), answer: .seconds(30)))
    }

    /// All that Redis holds, by key.
    private static func blocks(_ url: String) throws -> [String: [UInt8]] {
        let redis = try connection(url)
        guard case .array(let keys) = try redis.command("KEYS", "*") else { return [:] }
        var found: [String: [UInt8]] = [:]
        for key in keys.compactMap(\.text) {
            if case .bytes(let bytes) = try redis.command("GET", key) { found[key] = bytes }
        }
        return found
    }

    /// Empties Redis, and puts back what it held once.
    private static func flush(_ url: String, keeping blocks: [String: [UInt8]] = [:]) throws {
        let redis = try connection(url)
        _ = try redis.command("FLUSHALL")
        for (key, bytes) in blocks {
            _ = try redis.command(RedisCommand([Array("SET".utf8), Array(key.utf8), bytes]))
        }
    }

    /// Writes rubbish where blocks belong, and notices of what never was; returns whether anybody listened.
    private static func soil(_ url: String) throws -> Bool {
        let redis = try connection(url)
        let channels = try redis.command("PUBSUB", "CHANNELS", "*")
        guard case .array(let names) = channels else { return false }
        for channel in names.compactMap(\.text) {
            _ = try redis.command("PUBLISH", channel, "9223372036854775807")
            _ = try redis.command("PUBLISH", channel, "rubbish")
            let dataSet = channel.split(separator: ":").last.map(String.init) ?? ""
            _ = try redis.command("SET", "martlet:block:\(dataSet):1", "rubbish")
        }
        return !names.isEmpty
    }

    @Test("PostgreSQL ended at once and started again: nothing is lost, and nothing done twice")
    func postgres() async throws {
        let servers = try await DatabaseServers.start()
        let team = try await Team(servers)
        for way in ["stop immediate", "stop fast", "kill"] {
            try await team.write(20, way) {
                try await servers.order("postgres \(way)")
                try await waitUntil("the servers say that they are not ready") {
                    try await ServedDatabase.get(team.ports[0], "/readyz").status == 503
                }
                #expect(try await ServedDatabase.get(team.ports[0], "/healthz").status == 200)
                try await servers.order("postgres start")
            }
        }
        try await team.converge(240)
        for port in team.ports {
            try await waitUntil("they are ready again") {
                try await ServedDatabase.get(port, "/readyz").status == 200
            }
        }
        await team.end()
    }

    @Test("without Redis at the start a server starts, and finds it later")
    func withoutRedis() async throws {
        let servers = try await DatabaseServers.start()
        let database = try await ServedDatabase(servers)
        try await servers.order("redis stop")
        let port = try await database.start(redis: servers.redisURL)
        let device = try await database.device("device", port)
        device.start()
        try await ServedDatabase.add("one", device)
        try await waitUntil("it is there") {
            try await database.column("SELECT name FROM teams") == ["one"]
        }
        try await database.untilLogged("\"event\":\"redis\"")
        try await servers.order("redis start")
        try await waitUntil("notices are told") {
            try await ServedDatabase.add("more", device)
            return try await ServedDatabase.metric(port, "martlet_redis_notices_total") ?? 0 > 0
        }
        await device.close()
        await database.stop()
    }
}
