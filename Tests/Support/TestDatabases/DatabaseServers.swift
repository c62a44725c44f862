internal import Foundation
internal import Synchronization
internal import SystemKit

/// Real servers for tests, started by `scripts/databases`; gone when this is released, or with the
/// process.
package final class DatabaseServers: Sendable {
    /// What the script refused or could not do.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// One that all tests of the process share: they leave it running and as it was.
    package static func shared() async throws -> DatabaseServers {
        try await sharing.value
    }

    /// A whole bundle of tests at once holds more connections than PostgreSQL allows by itself.
    private static let sharing = Task { try await start(["--set", "max_connections=400"]) }

    /// A PostgreSQL whose write-ahead log can be read, for all tests of the process that do. The making
    /// of a slot waits for all transactions of a server.
    package static func logical() async throws -> DatabaseServers {
        try await sharingLogical.value
    }

    private static let sharingLogical = Task {
        try await start(
            ["--postgres"]
                + [
                    "max_connections=200", "wal_level=logical", "max_replication_slots=60",
                    "max_wal_senders=60",
                ].flatMap { ["--set", $0] })
    }

    /// The addresses that the script gave for the servers: `POSTGRES_URL`, `POSTGRES_CERTIFICATE`,
    /// `STANDBY_URL`, `REDIS_URL`.
    private let said: [String: String]
    private let input: FileHandle
    // Foundation's Process may be used from any thread, one at a time.
    private let process: Mutex<Process>
    private let answers: AsyncStream<String>

    package var postgresURL: String { said["POSTGRES_URL"] ?? "" }
    /// A file with the certificate PostgreSQL shows.
    package var certificate: String { said["POSTGRES_CERTIFICATE"] ?? "" }
    /// The address of the standby, if `--standby` was given.
    package var standbyURL: String { said["STANDBY_URL"] ?? "" }
    package var redisURL: String { said["REDIS_URL"] ?? "" }
    package var postgresPort: Int { Self.port(postgresURL) }
    package var redisPort: Int { Self.port(redisURL) }

    private init(
        said: [String: String], input: FileHandle, process: Process, answers: AsyncStream<String>
    ) {
        self.said = said
        self.input = input
        self.process = Mutex(process)
        self.answers = answers
    }

    deinit {
        // The script ends with its input, and takes the servers along.
        try? input.close()
    }

    /// Starts servers of the caller's own.
    /// - Parameter options: Of the script, such as `--postgres`.
    package static func start(_ options: [String] = []) async throws -> DatabaseServers {
        let process = Process()
        let input = Pipe()
        let output = Pipe()
        process.executableURL =
            URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().appendingPathComponent("../../../scripts/databases")
            .standardized
        process.arguments = ["serve"] + options
        process.standardInput = input
        process.standardOutput = output
        let answers = output.fileHandleForReading.incomingLines()
        try process.run()
        var said: [String: String] = [:]
        while let line = await answers.first(where: { _ in true }), line != "ready" {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            if words.count == 2 { said[words[0]] = words[1] }
        }
        guard !said.isEmpty else {
            throw Failure(description: "scripts/databases did not start any server")
        }
        return DatabaseServers(
            said: said, input: input.fileHandleForWriting, process: process, answers: answers)
    }

    /// Has the script do something, such as `postgres stop immediate`, and waits until it has.
    package func order(_ line: String) async throws {
        try input.write(contentsOf: Data((line + "\n").utf8))
        let answer = await answers.first(where: { _ in true }) ?? "no answer"
        guard answer == "ok" else { throw Failure(description: "“\(line)”: \(answer)") }
    }

    private static func port(_ url: String) -> Int {
        URLComponents(string: url)?.port ?? 0
    }
}
