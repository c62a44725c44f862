import Foundation
import Martlet
import MartletModel

/// The servers of the demo's devices.
protocol DemoBackEnd: Sendable {
    /// Returns the address of a device's server.
    func address(of device: Int) -> URL
    /// Whether all servers run.
    var isRunning: Bool { get }
    /// Whether all planned failures have happened.
    var isCalm: Bool { get }
    /// Runs the external writes and failures of the back end while the devices work. It ends when
    /// `isOver` returns true.
    func disturb(until isOver: @escaping @Sendable () -> Bool) async throws
    /// Waits until all external writes are in the log.
    func awaitLog() async throws
    /// Returns the path of a SQLite file with the content of the server's tables.
    /// - Parameter schema: The types, as the devices have them.
    func tables(_ schema: Schema) async throws -> String
    /// The marks that other programs wrote.
    var others: OtherMarks { get }
    /// The failures of the back end in a sentence; nil if there was none.
    var story: String? { get }
    /// The options that name the data to commands of the program.
    var dataOptions: [String] { get }
    /// The processes of the back end, to be watched from outside.
    var watched: [WatchedProcesses] { get }
    func stop() async
}

extension DemoFolder {
    /// Starts the back end, and ends it after `body`, also if `body` throws.
    /// - Throws: The error of `body`; `DemoError` if a server has ended unexpectedly meanwhile.
    func withBackEnd<Report: Sendable>(
        _ options: DemoOptions, rules: String? = nil,
        _ body: (any DemoBackEnd) async throws -> Report
    ) async throws -> Report {
        let serving =
            try options.serving + (rules.map { ["--rules", try write(rules: $0)] } ?? [])
        let backEnd = try await start(options, serving)
        do {
            let report = try await body(backEnd)
            await backEnd.stop()
            return report
        } catch {
            let died = !backEnd.isRunning && !Task.isCancelled
            // A separate task is needed, because a cancelled task does not wait.
            await Task { await backEnd.stop() }.value
            if died { throw DemoError("A server ended in mid-demo; see the logs in \(path).") }
            throw error
        }
    }

    private func start(
        _ options: DemoOptions, _ serving: [String]
    ) async throws -> any DemoBackEnd {
        if let program = options.databases {
            guard !isUsed else {
                throw DemoError(
                    "\(path) holds the files of an earlier demo, whose database is gone. Name"
                        + " another folder with --dir, or remove this one.")
            }
            return try await PostgresBackEnd.start(options, program: program, serving, self)
        }
        let server = try await ServerProcess.start(
            options.program,
            [
                "--schema", schemaPath, "--port", String(options.port), "--token",
                "demo:\(token)",
            ] + serving, folder: path, name: "server")
        return EmbeddedBackEnd(server: server, folder: self)
    }
}

/// One server over a folder of SQLite files.
struct EmbeddedBackEnd: DemoBackEnd {
    let server: ServerProcess
    let folder: DemoFolder

    func address(of device: Int) -> URL { server.address }
    var isRunning: Bool { server.isRunning }
    var isCalm: Bool { true }
    func disturb(until isOver: @escaping @Sendable () -> Bool) {}
    func awaitLog() {}
    func tables(_ schema: Schema) throws -> String { try folder.serverFile() }
    var others: OtherMarks { OtherMarks() }
    var story: String? { nil }
    var dataOptions: [String] { ["--data", folder.path + "/server"] }
    var watched: [WatchedProcesses] {
        let process = server.identifier
        return [WatchedProcesses(name: "server", folder: folder.path + "/server") { [process] }]
    }
    func stop() async { await server.stop() }
}
