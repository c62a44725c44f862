import Foundation
import Martlet
import Synchronization

/// A device that was away: the change sets it missed, the rows that changed in their place, and how
/// long its own saves wait meanwhile.
enum BehindCases {
    private static let sampleCount = 9
    private static let missed = 10_000
    private static let savingSamples = 5

    @Sendable static func run() async throws {
        let server = try BenchmarkServer()
        defer { server.stop() }
        let copies = try DeviceCopies()
        defer { copies.remove() }
        let transport = try server.transport()
        try server.advance(
            LoadPlan(server.pushes(devices: 10, sets: 2, records: 1_000)), by: 20)
        try await copies.prepare(transport)
        try server.advance(
            LoadPlan(server.pushes(devices: 50, sets: missed / 50, records: 1)), by: missed)
        try await catchUp(server, copies, "behind/\(missed) revisions", expected: "250 ms") {
            RecordingTransport(transport)
        }
        try await catchUp(
            server, copies, "behind/a difference of \(missed) rows", expected: nil
        ) {
            RecordingTransport(transport) { Self.askingForRows($0) }
        }
        try await saves(beside: server, copies, transport)
    }

    /// The longest a save waits while a difference of 110,000 rows is taken in, beside the middle
    /// save of a device that takes in nothing.
    private static func saves(
        beside server: BenchmarkServer, _ copies: DeviceCopies, _ transport: any Transport
    ) async throws {
        try server.advance(
            LoadPlan(server.pushes(devices: 10, sets: 10, records: 1_000)), by: 100)
        var longest: [Double] = []
        var whole: [Double] = []
        var undisturbed: [Double] = []
        for _ in 0..<savingSamples {
            let rows = RecordingTransport(transport) { Self.askingForRows($0) }
            try await copies.onCopy(rows) { client in
                undisturbed.append(try await save(on: client))
                let start = ContinuousClock.now
                let isDone = Mutex(false)
                async let synced = {
                    defer { isDone.withLock { $0 = true } }
                    return try await client.sync()
                }()
                var waits: [Double] = []
                while !isDone.withLock({ $0 }) {
                    waits.append(try await save(on: client))
                    // A person's pace: an exchange ends once nothing is left to be sent.
                    try await Task.sleep(for: .milliseconds(50))
                }
                _ = try await synced
                whole.append(milliseconds(since: start))
                longest.append(waits.max() ?? 0)
            }
        }
        let name = "behind/saves beside a difference of 110000 rows"
        try Measurement("\(name): longest wait", unit: "ms", samples: longest).report()
        try Measurement("\(name): until all is there", unit: "ms", samples: whole).report()
        try Measurement("behind/a save alone", unit: "ms", samples: undisturbed).report()
    }

    /// Saves one change of one record.
    /// - Returns: The milliseconds until it is saved.
    private static func save(on client: MartletClient) async throws -> Double {
        let start = ContinuousClock.now
        try await client.write {
            _ = try $0.update("teams", .integer(1), ["name": .text("Saved at \(start)")])
        }
        return milliseconds(since: start)
    }

    private static func milliseconds(since start: ContinuousClock.Instant) -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
    }

    /// A request's body that asks for rows. A member may stand anywhere.
    private static func askingForRows(_ body: [UInt8]) -> [UInt8] {
        guard body.firstRange(of: Array("\"rows\":".utf8)) == nil else { return body }
        return [UInt8(ascii: "{")] + Array("\"rows\":true,".utf8) + body.dropFirst()
    }

    private static func catchUp(
        _ server: BenchmarkServer, _ copies: DeviceCopies, _ name: String, expected: String?,
        _ make: () -> RecordingTransport
    ) async throws {
        var whole: [DeviceTime] = []
        var alone: [DeviceTime] = []
        var bytes = (plain: 0, gzip: 0)
        for sample in 0...sampleCount {
            let recording = make()
            let first = try await copies.onCopy(recording) { client in
                try await sync(client, server)
            }
            bytes = recording.byteCounts()
            let replaying = ReplayingTransport(recording)
            let again = try await copies.onCopy(replaying) { try await sync($0, server) }
            if sample > 0 {
                whole.append(first)
                alone.append(again)
            }
        }
        try whole.report("\(name), fetched and applied", expected: nil)
        try alone.report("\(name), the answer parsed and applied", expected: expected)
        try Measurement("\(name): plain", unit: "bytes", samples: [Double(bytes.plain)]).report()
        try Measurement("\(name): gzip", unit: "bytes", samples: [Double(bytes.gzip)]).report()
    }

    private static func sync(
        _ client: MartletClient, _ server: BenchmarkServer
    ) async throws -> DeviceTime {
        let time = try await DeviceTime.of(server) { try await client.sync() }
        let count = try await client.read {
            try $0.rows("SELECT count(*) AS count FROM players").first?["count"]
        }
        guard count == .integer(Int64(20_000 + missed)) else {
            throw BenchmarkFailure("The device has not all records.")
        }
        return time
    }
}
