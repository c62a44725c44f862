import Foundation
import Martlet

/// A device that was away: the change sets it missed, and the rows that changed in their place.
enum BehindCases {
    private static let sampleCount = 9
    private static let missed = 10_000

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
    }

    /// A member of a request's body may stand anywhere.
    private static func askingForRows(_ body: [UInt8]) -> [UInt8] {
        [UInt8(ascii: "{")] + Array("\"rows\":true,".utf8) + body.dropFirst()
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
