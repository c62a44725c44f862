import CLoad
import Foundation
import Martlet

/// A device's file in one state, and clients on copies of it: each run begins from the same.
final class DeviceCopies {
    private let folder: URL
    private var original: String { folder.appendingPathComponent("original.sqlite").path }

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-copies-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func remove() {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Makes the file: a device that has all the server has.
    /// - Parameter change: Statements run on the closed file.
    func prepare(_ transport: any Transport, change: ((String) throws -> Void)? = nil)
        async throws
    {
        let path = folder.appendingPathComponent("first.sqlite").path
        let client = try await MartletClient.open(
            path: path, schema: Organisation.schema, transport: transport)
        try await client.sync()
        await client.close()
        // The last connection may still be about to close: a copy of the file alone could be torn.
        guard rows_execute(path, "VACUUM INTO '\(original)'") == 0 else {
            throw BenchmarkFailure("The device's file could not be copied.")
        }
        try change?(original)
    }

    /// Runs `body` with a client on a copy.
    func onCopy<Result>(
        _ transport: any Transport, _ body: (MartletClient) async throws -> Result
    ) async throws -> Result {
        let path = folder.appendingPathComponent("\(UUID().uuidString).sqlite").path
        try FileManager.default.copyItem(atPath: original, toPath: path)
        defer {
            ["", "-wal", "-shm"].forEach { try? FileManager.default.removeItem(atPath: path + $0) }
        }
        let client = try await MartletClient.open(
            path: path, schema: Organisation.schema, transport: transport)
        let result: Result
        do {
            result = try await body(client)
        } catch {
            await client.close()
            throw error
        }
        await client.close()
        return result
    }
}

/// What something took: on the clock, and of CPU here and at the server.
struct DeviceTime {
    var seconds: Double
    var ownSeconds: Double
    var serverSeconds: Double

    static func of(
        _ server: BenchmarkServer, _ body: () async throws -> Void
    ) async throws -> DeviceTime {
        let used = (server.process.seconds, Machine.processorSeconds)
        let start = DispatchTime.now().uptimeNanoseconds
        try await body()
        return DeviceTime(
            seconds: Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9,
            ownSeconds: Machine.processorSeconds - used.1,
            serverSeconds: server.process.seconds - used.0)
    }
}

extension [DeviceTime] {
    func report(_ name: String, expected: String?) throws {
        let parts: [(String, String?, (DeviceTime) -> Double)] = [
            ("wall time", expected, \.seconds), ("device CPU", nil, \.ownSeconds),
            ("server CPU", nil, \.serverSeconds),
        ]
        for (what, expected, value) in parts {
            try Measurement(
                "\(name): \(what)", unit: "ms", samples: map { value($0) * 1_000 },
                expected: expected
            ).report()
        }
    }
}
