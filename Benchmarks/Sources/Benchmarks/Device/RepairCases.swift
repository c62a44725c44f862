import CLoad
import Foundation
import Martlet

/// A device whose file somebody has changed: a check finds the rows and repairs them.
enum RepairCases {
    private static let sampleCount = 9
    private static let records = 100_000

    @Sendable static func run() async throws {
        let server = try BenchmarkServer()
        defer { server.stop() }
        let transport = try server.transport()
        try server.advance(
            LoadPlan(server.pushes(devices: 10, sets: 10, records: 1_000)), by: 100)
        for differing in [10, 0] {
            let copies = try DeviceCopies()
            defer { copies.remove() }
            try await copies.prepare(transport) { path in
                guard differing > 0 else { return }
                try check(
                    rows_execute(
                        path,
                        """
                        UPDATE martlet_control SET capture = 0;
                        UPDATE players SET note = 'changed by hand'
                            WHERE id % \(records / differing) = 77;
                        UPDATE martlet_control SET capture = 1;
                        """))
            }
            try await repair(server, copies, transport, differing)
        }
    }

    private static func repair(
        _ server: BenchmarkServer, _ copies: DeviceCopies, _ transport: URLSessionTransport,
        _ differing: Int
    ) async throws {
        let name = "repair/\(differing) differing rows in \(records)"
        var times: [DeviceTime] = []
        var bytes = (plain: 0, gzip: 0)
        var exchanges = 0
        for sample in 0...sampleCount {
            let recording = RecordingTransport(transport)
            let time = try await copies.onCopy(recording) { client in
                var found = -1
                let time = try await DeviceTime.of(server) {
                    found = try await client.check().findings.count
                }
                guard found == differing else {
                    throw BenchmarkFailure("\(found) of \(differing) rows were found.")
                }
                return time
            }
            bytes = recording.byteCounts()
            exchanges = recording.exchanges.count
            if sample > 0 { times.append(time) }
        }
        try times.report(name, expected: differing > 0 ? "300 ms" : nil)
        try Measurement(
            "\(name): plain, both ways", unit: "bytes", samples: [Double(bytes.plain)],
            expected: differing > 0 ? "50 KB" : nil
        ).report()
        try Measurement(
            "\(name): gzip, both ways", unit: "bytes", samples: [Double(bytes.gzip)]
        ).report()
        try Measurement("\(name): exchanges", unit: "requests", samples: [Double(exchanges)])
            .report()
    }

    private static func check(_ code: Int32) throws {
        guard code == 0 else { throw BenchmarkFailure("SQLite failed with code \(code).") }
    }
}
