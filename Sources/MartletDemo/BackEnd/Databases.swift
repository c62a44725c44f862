import Foundation
import Synchronization
import SystemKit

/// PostgreSQL and Redis, which a program starts for the demo. The program takes commands as lines,
/// as `scripts/databases serve` does.
final class Databases: Sendable {
    let postgresURL: String
    let redisURL: String
    private let input: FileHandle
    // Foundation's Process may be used from any thread, one at a time.
    private let process: Mutex<Process>
    private let output: AsyncStream<String>

    private init(
        postgresURL: String, redisURL: String, input: FileHandle, process: Process,
        output: AsyncStream<String>
    ) {
        self.postgresURL = postgresURL
        self.redisURL = redisURL
        self.input = input
        self.process = Mutex(process)
        self.output = output
    }

    /// Starts them and waits until both answer.
    /// - Throws: `DemoError` if they do not start.
    static func start(_ program: String) async throws -> Databases {
        let process = Process()
        let input = Pipe()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["serve"]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let lines = output.fileHandleForReading.incomingLines()
        var said: [String: String] = [:]
        while let line = await lines.first(where: { _ in true }), line != "ready" {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            if words.count == 2 { said[words[0]] = words[1] }
        }
        guard let postgres = said["POSTGRES_URL"], let redis = said["REDIS_URL"] else {
            throw DemoError(
                "\(program) started neither PostgreSQL nor Redis; run it alone to see why.")
        }
        return Databases(
            postgresURL: postgres, redisURL: redis, input: input.fileHandleForWriting,
            process: process, output: lines)
    }

    /// The servers, which are processes below the program that starts them.
    var watched: [WatchedProcesses] {
        let root = process.withLock { $0.processIdentifier }
        return [
            // Each connection is a process, which opens files as it needs them.
            WatchedProcesses(name: "PostgreSQL", judged: [.threads]) {
                ProcessFigures.descendants(of: root, named: "postgres")
            },
            // Its own settings limit its memory.
            WatchedProcesses(name: "Redis", judged: [.descriptors, .threads]) {
                ProcessFigures.descendants(of: root, named: "redis-server")
            },
        ]
    }

    /// Sends a command, such as `redis kill`, and waits until it is done.
    func order(_ line: String) async throws {
        try input.write(contentsOf: Data((line + "\n").utf8))
        let answer = await output.first(where: { _ in true }) ?? "gone"
        guard answer == "ok" else { throw DemoError("“\(line)” of the databases: \(answer)") }
    }

    /// Ends both.
    func stop() async {
        try? input.close()
        for _ in 0..<300 where process.withLock({ $0.isRunning }) {
            try? await Task.sleep(for: .milliseconds(50))
        }
    }
}
