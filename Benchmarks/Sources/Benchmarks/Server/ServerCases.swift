import CLoad
import Foundation

/// Change sets going up: 50 devices that send and, in every answer, receive what the others sent.
enum ServerCases {
    private static let devices = 50
    private static let sampleCount = 5

    @Sendable static func run() async throws {
        let server = try BenchmarkServer()
        defer { server.stop() }
        try singles(server)
        try bulk(server)
    }

    // MARK: - One record in each set

    private static func singles(_ server: BenchmarkServer) throws {
        let each = 200
        let sets = devices * each
        let floor = try ChildProcess([FloorRole.name, "450"])
        defer { floor.stop() }
        for acceptsGzip in [false, true] {
            let form = acceptsGzip ? "gzip" : "plain"
            var pushes: [LoadPlan.Outcome] = []
            var floors: [LoadPlan.Outcome] = []
            for sample in 0...sampleCount {
                let plan = LoadPlan(
                    server.pushes(devices: devices, sets: each, records: 1),
                    acceptsGzip: acceptsGzip)
                let pushed = try server.advance(plan, by: sets)
                let echoed = try plan.run(on: floor)
                // The first warms up.
                if sample > 0 {
                    pushes.append(pushed)
                    floors.append(echoed)
                }
            }
            let name = "50 devices, sets of one record, \(form) answers"
            try report("server/\(name)", pushes, sets, "4,000/s, 0.25 CPU ms")
            if !acceptsGzip {
                try report("server/floor (evhttp, fixed answers): \(name)", floors, sets, nil)
            }
        }
        try sqliteFloor("sets of one record, a commit each", sets: 5_000, records: 1, group: 1)
        try sqliteFloor("sets of one record, 32 a commit", sets: 20_000, records: 1, group: 32)
    }

    static func report(
        _ name: String, _ outcomes: [LoadPlan.Outcome], _ sets: Int, _ expected: String?
    ) throws {
        let count = Double(sets)
        func measure(_ what: String, _ unit: String, _ value: (LoadPlan.Outcome) -> Double) throws {
            try Measurement(
                "\(name): \(what)", unit: unit, samples: outcomes.map(value), expected: expected
            ).report()
        }
        try measure("rate", "sets/s") { count / $0.seconds }
        try measure("server CPU", "ms/set") { $0.serverSeconds / count * 1_000 }
        try measure("load CPU", "ms/set") { $0.ownSeconds / count * 1_000 }
        try measure("received", "bytes/set") { Double($0.received) / count }
        try measure("median latency", "ms") { $0.latency(0.5) * 1_000 }
        try measure("99th percentile latency", "ms") { $0.latency(0.99) * 1_000 }
    }

    // MARK: - A thousand records in each set

    private static func bulk(_ server: BenchmarkServer) throws {
        let records = 1_000
        let total = Double(devices * records)
        for acceptsGzip in [false, true] {
            var outcomes: [LoadPlan.Outcome] = []
            for sample in 0...3 {
                let plan = LoadPlan(
                    server.pushes(devices: devices, sets: 1, records: records),
                    acceptsGzip: acceptsGzip)
                let outcome = try server.advance(plan, by: devices)
                if sample > 0 { outcomes.append(outcome) }
            }
            let form = acceptsGzip ? "gzip" : "plain"
            let name = "server/50 devices, one set of 1,000 records each, \(form) answers"
            func measure(_ what: String, _ unit: String, _ value: (LoadPlan.Outcome) -> Double)
                throws
            {
                try Measurement(
                    "\(name): \(what)", unit: unit, samples: outcomes.map(value),
                    expected: "25,000 records/s"
                ).report()
            }
            try measure("rate", "records/s") { total / $0.seconds }
            try measure("server CPU", "ms/1,000 records") {
                $0.serverSeconds / Double(devices) * 1_000
            }
            try measure("received", "MB in all") { Double($0.received) / 1e6 }
        }
        try sqliteFloor("sets of 1,000 records, a commit each", sets: 50, records: 1_000, group: 1)
    }

    private static func sqliteFloor(
        _ name: String, sets: Int, records: Int, group: Int
    ) throws {
        var results: [floor_result] = []
        for _ in 0..<sampleCount {
            let file = FileManager.default.temporaryDirectory
                .appendingPathComponent("martlet-floor-\(UUID().uuidString).sqlite").path
            defer {
                ["", "-wal", "-shm"].forEach {
                    try? FileManager.default.removeItem(atPath: file + $0)
                }
            }
            var result = floor_result()
            let teams = (1...Organisation.teams).map { "(\($0), 'Team \($0)')" }
            let script =
                Organisation.schema + "INSERT INTO teams VALUES \(teams.joined(separator: ","))"
            guard rows_execute(file, script) == 0,
                floor_sqlite(
                    file, Int32(sets), Int32(records), Int32(group), Int32(330 * records), &result)
                    == 0
            else { throw BenchmarkFailure("Bare SQLite failed.") }
            results.append(result)
        }
        let unit = records == 1 ? "sets/s" : "records/s"
        try Measurement(
            "server/floor (bare SQLite, \(name)): rate", unit: unit,
            samples: results.map { Double(sets * records) / $0.seconds }
        ).report()
        try Measurement(
            "server/floor (bare SQLite, \(name)): CPU", unit: "ms/set",
            samples: results.map { $0.processor_seconds / Double(sets) * 1_000 }
        ).report()
    }
}
