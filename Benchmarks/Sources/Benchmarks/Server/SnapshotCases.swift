import Foundation
import Martlet
import MartletModel
import MartletProtocol

/// A device that begins with a snapshot, and what making one costs the server.
enum SnapshotCases {
    @Sendable static func run() async throws {
        try await run(
            records: 100_000, samples: 7, seconds: "1.2 s", bytes: "7 MB", server: "0.1 s")
        try await run(records: 1_000_000, samples: 3, seconds: "10 s", bytes: "80 MB", server: nil)
    }

    private static func run(
        records: Int, samples: Int, seconds: String, bytes: String, server limit: String?
    ) async throws {
        let server = try BenchmarkServer()
        defer { server.stop() }
        let sets = records / 1_000
        try server.advance(
            LoadPlan(server.pushes(devices: 10, sets: sets / 10, records: 1_000)), by: sets)
        // One was made on the way. If there is none, the server makes one at its start.
        try server.restart(withoutSnapshots: true)
        let name = "snapshot/\(records) records"
        let manifest = try await manifest(server)
        try Measurement(
            "\(name): making, server CPU", unit: "s", samples: [server.process.seconds]
        ).report()
        try Measurement(
            "\(name): making, peak of the server's memory", unit: "MiB",
            samples: [Double(server.process.resident.peak) / 1_048_576]
        ).report()
        for coding in ["gzip", "zstd"] {
            let size = manifest.parts.reduce(0) { $0 + ($1[coding: coding]?.sum.bytes ?? 0) }
            try Measurement(
                "\(name): \(coding)", unit: "MB", samples: [Double(size) / 1_000_000],
                expected: bytes
            ).report()
        }
        var firsts: [First] = []
        for _ in 0..<samples { firsts.append(try await first(server, expecting: records)) }
        try Measurement(
            "\(name): to a usable store", unit: "s", samples: firsts.map(\.seconds),
            expected: seconds
        ).report()
        try Measurement(
            "\(name): server CPU of a download", unit: "s", samples: firsts.map(\.serverSeconds),
            expected: limit
        ).report()
        try Measurement(
            "\(name): device CPU", unit: "s", samples: firsts.map(\.ownSeconds)
        ).report()
        try Measurement(
            "\(name): growth of the server's memory", unit: "MiB",
            samples: firsts.map { Double($0.growth) / 1_048_576 }
        ).report()
    }

    /// What the server offers, once it does.
    static func manifest(_ server: BenchmarkServer) async throws -> SnapshotManifest {
        guard let url = URL(string: "http://127.0.0.1:\(server.process.port)") else {
            throw BenchmarkFailure("The server has no address.")
        }
        let transport = try URLSessionTransport(server: url, token: ServerRole.token)
        while true {
            if let manifest = try await transport.manifest() { return manifest }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// A device's beginning.
    struct First {
        var seconds: Double
        var serverSeconds: Double
        var ownSeconds: Double
        var growth: Int
    }

    /// A device begins with the snapshot, and counts its records.
    static func first(
        _ server: BenchmarkServer, expecting records: Int
    ) async throws -> First {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-device-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        server.process.forgetPeak()
        let resident = server.process.resident.now
        let used = (server.process.seconds, Machine.processorSeconds)
        var options = ClientOptions()
        options.seeding = .server
        let start = ContinuousClock.now
        let client = try await MartletClient.open(
            path: folder.appendingPathComponent("device.sqlite").path,
            schema: Organisation.schema,
            server: URL(string: "http://127.0.0.1:\(server.process.port)"),
            token: ServerRole.token, options: options)
        let count = try await client.read {
            try $0.rows("SELECT count(*) AS count FROM players").first?["count"]
        }
        let result = First(
            seconds: (ContinuousClock.now - start) / .seconds(1),
            serverSeconds: server.process.seconds - used.0,
            ownSeconds: Machine.processorSeconds - used.1,
            growth: server.process.resident.peak - resident)
        await client.close()
        guard count == .integer(Int64(records)) else {
            throw BenchmarkFailure("The device has not all records.")
        }
        return result
    }
}
