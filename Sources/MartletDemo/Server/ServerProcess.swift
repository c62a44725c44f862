import Foundation
import Synchronization

/// The real server, in a separate process.
final class ServerProcess: Sendable {
    /// The address at which it listens.
    let address: URL
    // Foundation's Process may be used from any thread, one at a time.
    private let process: Mutex<Process>

    /// Starts a server and waits until it listens.
    /// - Parameters:
    ///   - arguments: The arguments of `serve`, without `--data`.
    ///   - name: The name of its folder, and of the files with its log and process number next to
    ///     it.
    /// - Throws: `DemoError` if it does not start.
    static func start(
        _ program: String, _ arguments: [String], folder: String, name: String
    ) async throws -> ServerProcess {
        let logPath = "\(folder)/\(name).log"
        _ = FileManager.default.createFile(atPath: logPath, contents: nil)
        let log = try FileHandle(forWritingTo: URL(fileURLWithPath: logPath))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["serve", "--data", "\(folder)/\(name)"] + arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = log
        process.standardError = log
        try process.run()
        try Data("\(process.processIdentifier)\n".utf8)
            .write(to: URL(fileURLWithPath: "\(folder)/\(name).pid"))
        for _ in 0..<400 where process.isRunning {
            if let address = address(in: logPath) { return ServerProcess(process, address) }
            try await Task.sleep(for: .milliseconds(50))
        }
        process.terminate()
        let said = (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? ""
        throw DemoError("The server did not start. It said: \(said.suffix(600))")
    }

    /// Runs a command of the program to its end.
    /// - Parameter accepting: The statuses with which it may end.
    /// - Returns: Its output.
    /// - Throws: `DemoError` with its errors if it fails.
    @discardableResult
    static func run(
        _ program: String, _ arguments: [String], accepting statuses: Set<Int32> = [0]
    ) async throws -> String {
        let process = Process()
        let (output, errors) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let answer = output.fileHandleForReading.readDataToEndOfFile()
        let said = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard statuses.contains(process.terminationStatus) else {
            throw DemoError(
                "“martlet \(arguments.prefix(2).joined(separator: " "))” failed: "
                    + String(decoding: said.suffix(600), as: UTF8.self))
        }
        return String(decoding: answer, as: UTF8.self)
    }

    /// Returns the address that the server printed when it began to listen.
    private static func address(in logPath: String) -> URL? {
        guard let text = try? String(contentsOfFile: logPath, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        let start = "listening on "
        return lines.first { $0.hasPrefix(start) }
            .flatMap { URL(string: String($0.dropFirst(start.count))) }
    }

    private init(_ process: Process, _ address: URL) {
        self.process = Mutex(process)
        self.address = address
    }

    /// The number of the process.
    var identifier: Int32 { process.withLock { $0.processIdentifier } }

    var isRunning: Bool { process.withLock { $0.isRunning } }

    /// Asks the server to stop, and waits until it has stopped.
    func stop() async {
        let isAsked = process.withLock { process in
            guard process.isRunning else { return false }
            process.terminate()
            return true
        }
        guard isAsked else { return }
        for _ in 0..<300 where isRunning {
            try? await Task.sleep(for: .milliseconds(100))
        }
    }
}
