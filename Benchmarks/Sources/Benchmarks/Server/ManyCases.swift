import CLoad
import Foundation
import MartletServer

/// Measures how fast a server starts on a folder with many data sets, and what it costs at rest
/// while devices use some of them.
enum ManyCases {
    static let known = 10_000
    static let active = 100
    /// Seconds for which a server at rest is watched.
    private static let watched = 20.0

    @Sendable static func run() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-benchmark-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try prepare(folder)
        let start = ContinuousClock.now
        let server = try ChildProcess([ManyRole.name, folder.path])
        defer { server.stop() }
        try report("start", "s", seconds(since: start), "1 s")
        try report("memory at the start", "MiB", mebibytes(server), nil)

        let opening = ContinuousClock.now
        var listeners: [OpaquePointer?] = []
        defer { listeners.forEach { fanout_close($0) } }
        for number in 0..<active {
            var made: OpaquePointer?
            let code = fanout_open(&made, server.port, 1, request(of: number), "retry: ")
            guard code == 0 else {
                throw BenchmarkFailure("Data set \(number) is not served: errno \(code).")
            }
            listeners.append(made)
        }
        try report(
            "opening a data set, with its first listener", "ms",
            seconds(since: opening) * 1_000 / Double(active), nil)
        // The work that the opening has caused ends first.
        try await Task.sleep(for: .seconds(5))
        let used = server.seconds
        try await Task.sleep(for: .seconds(watched))
        try report(
            "processor at rest, \(active) in use", "% of a core",
            (server.seconds - used) * 100 / watched, "1 %")
        try report("memory, \(active) in use", "MiB", mebibytes(server), "200 MiB")
        try report("descriptors, \(active) in use", "", Double(server.descriptors), nil)
    }

    /// Returns the name of a data set. The data sets in use have the lowest numbers.
    static func name(_ number: Int) -> String { "team-\(number)" }

    /// 23 tables that refer to each other.
    static let schema = (0..<23).map { number in
        """
        CREATE TABLE kind\(number) (
            id INTEGER PRIMARY KEY, parent INTEGER REFERENCES kind\(max(0, number - 1))(id),
            name TEXT NOT NULL, note TEXT, amount NUMERIC, active BOOLEAN
        );
        CREATE INDEX kind\(number)_by_parent ON kind\(number)(parent);
        """
    }.joined(separator: "\n")

    /// Makes the files of all data sets. Data sets in use get a file each; the others share one
    /// file by hard links.
    private static func prepare(_ folder: URL) throws {
        let pattern = folder.appendingPathComponent("pattern")
        try FileManager.default.createDirectory(at: pattern, withIntermediateDirectories: true)
        // The first file is one that a server has made and closed.
        try ChildProcess([ManyRole.name, pattern.path, "1"]).stop()
        let made = pattern.appendingPathComponent(name(0) + ".sqlite")
        for number in 0..<known {
            let file = folder.appendingPathComponent(name(number) + ".sqlite")
            if number < active {
                try FileManager.default.copyItem(at: made, to: file)
            } else {
                try FileManager.default.linkItem(at: made, to: file)
            }
        }
        try FileManager.default.removeItem(at: pattern)
    }

    private static func request(of number: Int) -> String {
        "GET /deltas?since=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
            + "Authorization: Bearer \(ManyRole.token(number))\r\n\r\n"
    }

    private static func report(
        _ name: String, _ unit: String, _ sample: Double, _ expected: String?
    ) throws {
        try Measurement(
            "many: \(known) data sets, \(name)", unit: unit, samples: [sample], expected: expected
        ).report()
    }

    private static func seconds(since start: ContinuousClock.Instant) -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    private static func mebibytes(_ server: ChildProcess) -> Double {
        Double(server.resident.now) / 1_048_576
    }
}

/// Runs the server of many data sets, in a process of its own.
enum ManyRole {
    static let name = "run-many"

    static func token(_ number: Int) -> String { "token-\(number)" }

    /// Serves a folder until standard input ends.
    /// - Parameter active: How many of its data sets have tokens.
    static func run(folder: String, active: Int) async throws {
        var configuration = ServerConfiguration(
            dataDirectory: folder, schema: ManyCases.schema)
        configuration.tokens = try (0..<active).map {
            try FixedToken(dataSet: ManyCases.name($0), token: token($0))
        }
        try await ServerRole.serve(configuration)
    }
}
