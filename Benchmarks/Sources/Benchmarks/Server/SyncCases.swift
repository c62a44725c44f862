import Foundation
import Martlet

/// Change sets coming down: nothing new, a little behind, and everything.
enum SyncCases {
    private static let sampleCount = 7

    @Sendable static func run() async throws {
        let server = try BenchmarkServer()
        defer { server.stop() }
        // A log of 50 devices' single edits.
        try server.advance(
            LoadPlan(server.pushes(devices: 50, sets: 240, records: 1)), by: 50 * 240)
        try idle(server)
        try behind(server)
        try await fresh()
    }

    // MARK: - Nothing new

    /// Devices that have everything, each asking so many times.
    static func idle(_ head: LoadPlan.Head, connections: Int, each: Int) -> LoadPlan {
        LoadPlan(
            (0..<connections).map { device in
                let pull = LoadPlan.Request(client: "device-\(device)", head: head, types: nil)
                return Array(repeating: pull, count: each)
            })
    }

    private static func idle(_ server: BenchmarkServer) throws {
        let floor = try ChildProcess([FloorRole.name, "200"])
        defer { floor.stop() }
        for connections in [1, 50] {
            let each = 20_000 / connections / (connections == 1 ? 4 : 1)
            let count = Double(each * connections)
            let plan = idle(server.head, connections: connections, each: each)
            var outcomes: [(LoadPlan.Outcome, LoadPlan.Outcome)] = []
            for sample in 0...sampleCount {
                let pair = (try plan.run(on: server.process), try plan.run(on: floor))
                if sample > 0 { outcomes.append(pair) }
            }
            for (name, list) in [
                ("sync/idle", outcomes.map(\.0)),
                ("sync/floor (evhttp, fixed answers): idle", outcomes.map(\.1)),
            ] {
                let title = "\(name), \(connections) at once"
                let expected = "0.3 ms, 0.08 CPU ms"
                try Measurement(
                    "\(title): median latency", unit: "ms",
                    samples: list.map { $0.latency(0.5) * 1_000 }, expected: expected
                ).report()
                try Measurement(
                    "\(title): server CPU", unit: "ms/sync",
                    samples: list.map { $0.serverSeconds / count * 1_000 }, expected: expected
                ).report()
                try Measurement(
                    "\(title): rate", unit: "syncs/s", samples: list.map { count / $0.seconds }
                ).report()
            }
        }
    }

    // MARK: - Behind

    /// A device that lacks so many revisions, asking so many times for the same.
    static func behind(
        _ head: LoadPlan.Head, by revisions: Int, requests: Int, acceptsGzip: Bool
    ) -> LoadPlan {
        let since = LoadPlan.Head(revision: head.revision - Int64(revisions))
        let pull = LoadPlan.Request(client: "device-0", head: since, types: nil)
        return LoadPlan(
            [Array(repeating: pull, count: requests)], acceptsGzip: acceptsGzip, follows: false)
    }

    private static func behind(_ server: BenchmarkServer) throws {
        let cases = [(1, 1_000, "0.5 ms"), (100, 500, "2 ms"), (10_000, 15, "80 ms")]
        for acceptsGzip in [true, false] {
            for (revisions, requests, expected) in cases {
                let plan = behind(
                    server.head, by: revisions, requests: requests, acceptsGzip: acceptsGzip)
                let outcomes = try (0...sampleCount).map { _ in
                    try plan.run(on: server.process)
                }.dropFirst()
                let form = acceptsGzip ? "gzip" : "plain"
                let name = "sync/\(revisions) behind, \(form)"
                try Measurement(
                    "\(name): median latency", unit: "ms",
                    samples: outcomes.map { $0.latency(0.5) * 1_000 }, expected: expected
                ).report()
                try Measurement(
                    "\(name): server CPU", unit: "ms/sync",
                    samples: outcomes.map { $0.serverSeconds / Double(requests) * 1_000 }
                ).report()
                try Measurement(
                    "\(name): received", unit: "bytes/sync",
                    samples: outcomes.map { Double($0.received) / Double(requests) }
                ).report()
            }
        }
    }

    // MARK: - Everything

    /// One device's first exchanges.
    private struct First {
        var seconds: Double
        var serverSeconds: Double
        var ownSeconds: Double
        var growth: Int
    }

    private static func fresh() async throws {
        let records = 100_000
        for perSet in [1_000, 10] {
            let server = try BenchmarkServer()
            defer { server.stop() }
            let sets = records / perSet
            try server.advance(
                LoadPlan(server.pushes(devices: 10, sets: sets / 10, records: perSet)), by: sets)
            var cold: [First] = []
            var warm: [First] = []
            for _ in 0..<sampleCount {
                try server.restart()
                cold.append(try await first(server, expecting: records))
                warm.append(try await first(server, expecting: records))
            }
            for (state, list) in [("first after a start", cold), ("later", warm)] {
                let name = "sync/fresh device, 100,000 records in \(sets) sets, \(state)"
                try Measurement(
                    "\(name): to a usable store", unit: "s", samples: list.map(\.seconds),
                    expected: "3 s"
                ).report()
                try Measurement(
                    "\(name): server CPU", unit: "s", samples: list.map(\.serverSeconds),
                    expected: "0.8 s"
                ).report()
                try Measurement(
                    "\(name): device CPU", unit: "s", samples: list.map(\.ownSeconds)
                ).report()
                try Measurement(
                    "\(name): growth of the server's memory", unit: "MiB",
                    samples: list.map { Double($0.growth) / 1_048_576 }, expected: "100 MiB"
                ).report()
            }
        }
    }

    private static func first(
        _ server: BenchmarkServer, expecting records: Int
    ) async throws -> First {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-device-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        server.process.forgetPeak()
        let resident = server.process.resident.now
        let used = (server.process.seconds, Machine.processorSeconds)
        let start = ContinuousClock.now
        let client = try await MartletClient.open(
            path: folder.appendingPathComponent("device.sqlite").path,
            schema: Organisation.schema,
            server: URL(string: "http://127.0.0.1:\(server.process.port)"), token: ServerRole.token)
        try await client.sync()
        let count = try await client.read {
            try $0.rows("SELECT count(*) AS count FROM players").first?["count"]
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let result = First(
            seconds: seconds, serverSeconds: server.process.seconds - used.0,
            ownSeconds: Machine.processorSeconds - used.1,
            growth: server.process.resident.peak - resident)
        await client.close()
        guard count == .integer(Int64(records)) else {
            throw BenchmarkFailure("The device has not all records.")
        }
        return result
    }
}
