import CLoad
import Foundation
import Martlet

/// The production back end: servers on PostgreSQL and Redis, beside what pgbench and
/// redis-benchmark reach in the same run.
enum PostgresCases {
    private static let devices = 50
    private static let sampleCount = 5

    @Sendable static func run() async throws {
        try oneServer()
        try twoServers()
        try behind()
        try await ExternalCases.run()
    }

    // MARK: - Change sets going up

    private static func oneServer() throws {
        let servers = try PostgresServers(count: 1)
        defer { servers.stop() }
        let each = 100
        var pushes: [[LoadPlan.Outcome]] = []
        var floors: [Double] = []
        for sample in 0...sampleCount {
            let plan = LoadPlan(
                servers.pushes(devices: 0..<devices, sets: each, records: 1), acceptsGzip: false)
            let outcome = try servers.advance([plan], by: devices * each)
            let floor = try pgbench(servers.url)
            if sample > 0 {
                pushes.append(outcome)
                floors.append(floor)
            }
        }
        try report("50 devices, sets of one record", pushes, devices * each, "2,500/s, 0.3 CPU ms")
        try Measurement(
            "postgres/floor (pgbench, the same rows, a commit each, 8 clients): rate",
            unit: "transactions/s", samples: floors
        ).report()
        try redisFloor(servers.redis)
        var bulk: [[LoadPlan.Outcome]] = []
        for sample in 0...3 {
            let plan = LoadPlan(
                servers.pushes(devices: 0..<devices, sets: 1, records: 1_000), acceptsGzip: true)
            let outcome = try servers.advance([plan], by: devices)
            if sample > 0 { bulk.append(outcome) }
        }
        try Measurement(
            "postgres/50 devices, a set of 1,000 records each: rate", unit: "records/s",
            samples: bulk.map { Double(devices * 1_000) / longest($0) },
            expected: "12,000 records/s"
        ).report()
        try Measurement(
            "postgres/50 devices, a set of 1,000 records each: server CPU",
            unit: "ms/1,000 records",
            samples: bulk.map { $0.reduce(0) { $0 + $1.serverSeconds } / Double(devices) * 1_000 }
        ).report()
    }

    /// The same load on two servers, half of the devices each, beside one server in pairs.
    private static func twoServers() throws {
        let servers = try PostgresServers(count: 2)
        defer { servers.stop() }
        let each = 100
        let half = devices / 2
        var two: [[LoadPlan.Outcome]] = []
        var ratios: [Double] = []
        for sample in 0...sampleCount {
            let alone = LoadPlan(
                servers.pushes(devices: 0..<devices, sets: each, records: 1), acceptsGzip: false)
            let one = try servers.advance([alone], by: devices * each)
            let plans = [0..<half, half..<devices].map {
                LoadPlan(servers.pushes(devices: $0, sets: each, records: 1), acceptsGzip: false)
            }
            let both = try servers.advance(plans, by: devices * each)
            if sample > 0 {
                two.append(both)
                ratios.append(longest(one) / longest(both))
            }
        }
        try report("50 devices on two servers, sets of one record", two, devices * each, nil)
        try Measurement(
            "postgres/two servers beside one, rate", unit: "x", samples: ratios,
            expected: "at least 0.8"
        ).report()
    }

    private static func longest(_ outcomes: [LoadPlan.Outcome]) -> Double {
        outcomes.map(\.seconds).max() ?? 0
    }

    private static func report(
        _ name: String, _ runs: [[LoadPlan.Outcome]], _ sets: Int, _ expected: String?
    ) throws {
        let count = Double(sets)
        func measure(_ what: String, _ unit: String, _ value: ([LoadPlan.Outcome]) -> Double) throws
        {
            try Measurement(
                "postgres/\(name): \(what)", unit: unit, samples: runs.map(value),
                expected: expected
            ).report()
        }
        try measure("rate", "sets/s") { count / longest($0) }
        try measure("server CPU", "ms/set") {
            $0.reduce(0) { $0 + $1.serverSeconds } / count * 1_000
        }
        try measure("load CPU", "ms/set") {
            $0.reduce(0) { $0 + $1.ownSeconds } / count * 1_000
        }
        try measure("median latency", "ms") { ($0.map { $0.latency(0.5) }.max() ?? 0) * 1_000 }
        try measure("99th percentile latency", "ms") {
            ($0.map { $0.latency(0.99) }.max() ?? 0) * 1_000
        }
    }

    // MARK: - Floors

    /// One row, its entry in a log, and a counter raised, in one transaction.
    private static func pgbench(_ url: String) throws -> Double {
        let session = try SQLSession(url)
        defer { session.stop() }
        try session.run(
            """
            CREATE TABLE IF NOT EXISTS floor_players (LIKE players INCLUDING ALL);
            CREATE TABLE IF NOT EXISTS floor_log (revision bigint PRIMARY KEY, body bytea);
            CREATE TABLE IF NOT EXISTS floor_counter (n bigint);
            INSERT INTO floor_counter SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM floor_counter);
            """)
        let script = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-pgbench-\(UUID().uuidString).sql")
        defer { try? FileManager.default.removeItem(at: script) }
        try Data(
            """
            BEGIN;
            INSERT INTO floor_players (team, first_name, last_name, birthday, shirt, active, email, note)
            VALUES (1, 'first', 'last', '2012-01-01', 7, true, 'a@example.org', 'note of six words in no order');
            WITH c AS (UPDATE floor_counter SET n = n + 1 RETURNING n)
            INSERT INTO floor_log SELECT n, convert_to(repeat('x', 330), 'UTF8') FROM c;
            COMMIT;

            """.utf8
        ).write(to: script)
        // A count of transactions, not a time: pgbench's alarm is blocked where it is started from.
        let said = try FloorProgram.run([
            "pgbench", "-n", "-f", script.path, "-M", "prepared", "-c", "8", "-t", "500", url,
        ])
        let line = said.split(separator: "\n").first { $0.hasPrefix("tps = ") }
        guard let rate = line.flatMap({ Double($0.split(separator: " ")[2]) }) else {
            throw BenchmarkFailure("pgbench said no rate: \(said)")
        }
        return rate
    }

    private static func redisFloor(_ url: String) throws {
        guard let address = URLComponents(string: url), let port = address.port else {
            throw BenchmarkFailure("No Redis at \(url).")
        }
        let said = try FloorProgram.run([
            "redis-benchmark", "-p", String(port), "-t", "set,get", "-d", "65536", "-n", "5000",
            "-c", "4", "--csv",
        ])
        for line in said.split(separator: "\n").dropFirst() {
            let words = line.split(separator: ",").map { $0.filter { $0 != "\"" } }
            guard words.count > 1, let rate = Double(words[1]) else { continue }
            try Measurement(
                "postgres/floor (redis-benchmark, 64 KiB): \(words[0])", unit: "1/s",
                samples: [rate]
            ).report()
        }
    }

    // MARK: - Change sets coming down

    /// 10,000 revisions behind, asked of a server that has just been started, by a device that sent
    /// none of them: what was sent by the one that asks is put into another form, and no block that
    /// holds such entries can be passed on as it is.
    private static func behind() throws {
        let servers = try PostgresServers(count: 1)
        defer { servers.stop() }
        let each = 240
        try servers.advance(
            [LoadPlan(servers.pushes(devices: 0..<devices, sets: each, records: 1))],
            by: devices * each)
        let since = LoadPlan.Head(revision: servers.head.revision - 10_000)
        let pull = LoadPlan.Request(client: "reader", head: since, types: nil)
        for usesRedis in [true, false] {
            for acceptsGzip in [true, false] {
                var first: [LoadPlan.Outcome] = []
                var later: [LoadPlan.Outcome] = []
                var taken: [Double] = []
                for _ in 0..<sampleCount {
                    try servers.restart(0, usesRedis: usesRedis)
                    try servers.converge(0)
                    let plan = LoadPlan([[pull]], acceptsGzip: acceptsGzip, follows: false)
                    first.append(try plan.run(on: servers.processes[0]))
                    taken.append(try servers.blocksTaken(0))
                    later.append(try plan.run(on: servers.processes[0]))
                }
                let form = acceptsGzip ? "gzip" : "plain"
                let source = usesRedis ? "Redis" : "PostgreSQL alone"
                try Measurement(
                    "postgres/10,000 behind, \(source), \(form), first after a start: from Redis",
                    unit: "blocks", samples: taken
                ).report()
                for (state, outcomes) in [("first after a start", first), ("later", later)] {
                    try Measurement(
                        "postgres/10,000 behind, \(source), \(form), \(state): latency", unit: "ms",
                        samples: outcomes.map { $0.latency(0.5) * 1_000 },
                        expected: usesRedis ? "80 ms" : nil
                    ).report()
                    try Measurement(
                        "postgres/10,000 behind, \(source), \(form), \(state): server CPU",
                        unit: "ms", samples: outcomes.map { $0.serverSeconds * 1_000 }
                    ).report()
                }
            }
        }
    }
}
