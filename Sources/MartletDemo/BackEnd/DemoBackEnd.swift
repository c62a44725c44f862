import Foundation
import Martlet
import MartletModel

/// What the demo's devices talk to.
protocol DemoBackEnd: Sendable {
    /// Where a device finds a server.
    func address(of device: Int) -> URL
    /// Whether all servers run.
    var isRunning: Bool { get }
    /// Whether all that is to happen to it has happened.
    var isCalm: Bool { get }
    /// What happens to the back end while the devices work: other programs that write, failures.
    /// Ends when `isOver` says so.
    func disturb(until isOver: @escaping @Sendable () -> Bool) async throws
    /// Waits until everything other programs wrote is in the log.
    func awaitLog() async throws
    /// A SQLite file that holds what the server's tables hold.
    /// - Parameter schema: The types, as the devices have them.
    func tables(_ schema: Schema) async throws -> String
    /// The marks that other programs wrote.
    var others: OtherMarks { get }
    /// What happened to the back end meanwhile, in a sentence; nil where nothing did.
    var story: String? { get }
    /// The programs it consists of, to be watched from outside.
    var watched: [WatchedProcesses] { get }
    func stop() async
}

extension DemoFolder {
    /// Starts what the devices talk to, and ends it when `body` has ended, however it does.
    /// - Throws: What `body` throws; `DemoError` where a server ended by itself meanwhile.
    func withBackEnd<Report: Sendable>(
        _ options: DemoOptions, _ body: (any DemoBackEnd) async throws -> Report
    ) async throws -> Report {
        let backEnd = try await start(options)
        do {
            let report = try await body(backEnd)
            await backEnd.stop()
            return report
        } catch {
            let died = !backEnd.isRunning && !Task.isCancelled
            // A task of its own: one that was cancelled does not wait for anything.
            await Task { await backEnd.stop() }.value
            if died { throw DemoError("A server ended in mid-demo; see the logs in \(path).") }
            throw error
        }
    }

    private func start(_ options: DemoOptions) async throws -> any DemoBackEnd {
        if let program = options.databases {
            guard !isUsed else {
                throw DemoError(
                    "\(path) holds the files of an earlier demo, whose database is gone. Name"
                        + " another folder with --dir, or remove this one.")
            }
            return try await PostgresBackEnd.start(options, program: program, self)
        }
        let server = try await ServerProcess.start(
            options.program,
            [
                "--schema", schemaPath, "--port", String(options.port), "--token",
                "demo:\(token)",
            ] + options.serving, folder: path, name: "server")
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
    var watched: [WatchedProcesses] {
        let process = server.identifier
        return [WatchedProcesses(name: "server", folder: folder.path + "/server") { [process] }]
    }
    func stop() async { await server.stop() }
}
