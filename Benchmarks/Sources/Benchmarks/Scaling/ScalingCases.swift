import Foundation
import Martlet
import MartletModel
import MartletStore

/// The same work on more and more records, and by more and more devices; `scripts/scaling` draws what
/// comes of it.
///
/// A case is named `scaling/SERIES/POINT: WHAT`.
enum ScalingCases {
    @Sendable static func run() async throws {
        for records in try ScalingPoints.chosen("records", of: [1_000, 10_000, 100_000, 1_000_000])
        {
            try await RecordsPoint(records: records).run()
        }
        let hasDatabases = ProcessInfo.processInfo.environment["POSTGRES_URL"] != nil
        for devices in try ScalingPoints.chosen("devices", of: [1, 10, 50, 200]) {
            let point = DevicesPoint(devices: devices)
            try point.runOnFile()
            if hasDatabases { try point.runOnPostgres() }
        }
    }
}

/// One data set of so many records, and what a device has to do with it.
private struct RecordsPoint {
    let records: Int
    private static let samples = 5
    /// Change sets of one record that come after all others.
    private static let singles = 200

    func run() async throws {
        let server = try BenchmarkServer()
        defer { server.stop() }
        let sets = records / 1_000
        let authors = min(10, sets)
        try server.advance(
            LoadPlan(server.pushes(devices: authors, sets: sets / authors, records: 1_000)),
            by: sets)
        // There is no snapshot yet, so one is made at the start.
        try server.restart()
        try await snapshots(server)
        // By many, so that who asks has sent few of them: own entries cost more.
        try server.advance(
            LoadPlan(server.pushes(devices: 50, sets: Self.singles / 50, records: 1)),
            by: Self.singles)
        try syncs(server)
        try report(
            "server resident memory", "MiB", [Double(server.process.resident.now) / 1_048_576])
        try await device(server)
    }

    private func report(
        _ what: String, _ unit: String, _ samples: [Double], _ expected: String? = nil
    ) throws {
        try Measurement(
            "scaling/records/\(records): \(what)", unit: unit, samples: samples, expected: expected
        ).report()
    }

    private func snapshots(_ server: BenchmarkServer) async throws {
        let manifest = try await SnapshotCases.manifest(server)
        try report("making a snapshot, server CPU", "s", [server.process.seconds])
        let size = manifest.parts.reduce(0) { $0 + ($1[coding: "gzip"]?.sum.bytes ?? 0) }
        try report("snapshot, gzip", "MB", [Double(size) / 1e6])
        var firsts: [SnapshotCases.First] = []
        for _ in 0..<(records < 1_000_000 ? Self.samples : 3) {
            firsts.append(try await SnapshotCases.first(server, expecting: records))
        }
        try report("snapshot, to a usable store", "s", firsts.map(\.seconds))
        try report("snapshot, server CPU of a download", "s", firsts.map(\.serverSeconds))
    }

    private func syncs(_ server: BenchmarkServer) throws {
        func measure(_ what: String, _ plan: LoadPlan) throws {
            let outcomes = try (0...Self.samples).map { _ in try plan.run(on: server.process) }
                .dropFirst()
            try report("\(what), latency", "ms", outcomes.map { $0.latency(0.5) * 1_000 })
            try report(
                "\(what), server CPU", "ms",
                outcomes.map { $0.serverSeconds / Double(plan.requestCount) * 1_000 })
        }
        try measure("idle sync", SyncCases.idle(server.head, connections: 1, each: 2_000))
        for (revisions, requests) in [(1, 1_000), (100, 500)] {
            try measure(
                "\(revisions) behind",
                SyncCases.behind(
                    server.head, by: revisions, requests: requests, acceptsGzip: true))
        }
    }

    /// A device with all records: saves of one record, and look-ups of records in no order.
    private func device(_ server: BenchmarkServer) async throws {
        let copies = try DeviceCopies()
        defer { copies.remove() }
        let transport = try server.transport()
        try await copies.prepare(transport)
        try await copies.onCopy(transport) { client in
            let last = records
            var saves: [Double] = []
            var looks: [Double] = []
            for number in 0..<300 {
                // A stride that meets all parts of the table.
                let key = Int64(1 + (number &* 7_919_317) % last)
                let start = DispatchTime.now().uptimeNanoseconds
                try await client.write { context in
                    _ = try context.update(
                        "players", .integer(key),
                        RecordValues(names: ["note"], values: [.text("note \(number)")]))
                }
                saves.append(Double(DispatchTime.now().uptimeNanoseconds - start) / 1e6)
            }
            for number in 0..<3_000 {
                let key = Int64(1 + (number &* 7_919_317) % last)
                let start = DispatchTime.now().uptimeNanoseconds
                let record = try await client.read { try $0.record("players", .integer(key)) }
                looks.append(Double(DispatchTime.now().uptimeNanoseconds - start) / 1e6)
                guard record != nil else { throw BenchmarkFailure("Record \(key) is missing.") }
            }
            try report("durable local save of one record", "ms", Array(saves.dropFirst(50)))
            try report("query by key on the device", "ms", Array(looks.dropFirst(500)))
        }
    }
}

/// So many devices that each send sets of one record, one after the other, and all receive what the
/// others sent.
private struct DevicesPoint {
    let devices: Int
    private static let samples = 3
    /// Sets of all devices together in a run.
    private static let sets = 4_000
    private static let idleSyncs = 20_000

    private var each: Int { Self.sets / devices }

    private func name(_ storage: String) -> String { "scaling/devices/\(devices): \(storage)" }

    func runOnFile() throws {
        let server = try BenchmarkServer()
        defer { server.stop() }
        var pushes: [LoadPlan.Outcome] = []
        for _ in 0...Self.samples {
            let plan = LoadPlan(
                server.pushes(devices: devices, sets: each, records: 1), acceptsGzip: false)
            pushes.append(try server.advance(plan, by: devices * each))
        }
        try report("file", pushes, try idle(server.head, server.process))
    }

    func runOnPostgres() throws {
        let servers = try PostgresServers(count: 1)
        defer { servers.stop() }
        var pushes: [LoadPlan.Outcome] = []
        for _ in 0...Self.samples {
            let plan = LoadPlan(
                servers.pushes(devices: 0..<devices, sets: each, records: 1), acceptsGzip: false)
            pushes += try servers.advance([plan], by: devices * each)
        }
        try report("PostgreSQL", pushes, try idle(servers.head, servers.processes[0]))
    }

    private func idle(_ head: LoadPlan.Head, _ process: ChildProcess) throws -> [LoadPlan.Outcome] {
        let plan = SyncCases.idle(head, connections: devices, each: Self.idleSyncs / devices)
        return try (0...Self.samples).map { _ in try plan.run(on: process) }
    }

    /// The first of each warms up.
    private func report(
        _ storage: String, _ pushes: [LoadPlan.Outcome], _ idles: [LoadPlan.Outcome]
    ) throws {
        try ServerCases.report(
            "\(name(storage)), sets of one record", Array(pushes.dropFirst()), devices * each, nil)
        let count = Double(Self.idleSyncs / devices * devices)
        try Measurement(
            "\(name(storage)), idle syncs: rate", unit: "syncs/s",
            samples: idles.dropFirst().map { count / $0.seconds }
        ).report()
        try Measurement(
            "\(name(storage)), idle syncs: server CPU", unit: "ms/sync",
            samples: idles.dropFirst().map { $0.serverSeconds / count * 1_000 }
        ).report()
    }
}
