import Foundation

/// The real server, in a process of its own.
final class ServerProcess {
    /// Where it listens.
    let address: URL
    private let process: Process

    /// Starts a server and waits until it listens.
    /// - Throws: `DemoError` when it does not come up.
    static func start(
        _ options: DemoOptions, schemaPath: String, token: String
    ) async throws -> ServerProcess {
        let folder = options.directory
        let logPath = folder + "/server.log"
        _ = FileManager.default.createFile(atPath: logPath, contents: nil)
        let log = try FileHandle(forWritingTo: URL(fileURLWithPath: logPath))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: options.program)
        process.arguments = [
            "serve", "--data", folder + "/server", "--schema", schemaPath, "--port",
            String(options.port), "--token", "demo:\(token)", "--log", "warning",
            "--snapshot-every", String(options.snapshotEvery),
        ]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = log
        process.standardError = log
        try process.run()
        try Data("\(process.processIdentifier)\n".utf8)
            .write(to: URL(fileURLWithPath: folder + "/server.pid"))
        for _ in 0..<400 where process.isRunning {
            if let address = address(in: logPath) { return ServerProcess(process, address) }
            try await Task.sleep(for: .milliseconds(50))
        }
        process.terminate()
        let said = (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? ""
        throw DemoError("The server did not start. It said: \(said.suffix(600))")
    }

    /// The address the server printed once it listened.
    private static func address(in logPath: String) -> URL? {
        guard let text = try? String(contentsOfFile: logPath, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        let start = "listening on "
        return lines.first { $0.hasPrefix(start) }
            .flatMap { URL(string: String($0.dropFirst(start.count))) }
    }

    private init(_ process: Process, _ address: URL) {
        self.process = process
        self.address = address
    }

    var isRunning: Bool { process.isRunning }
    var identifier: Int32 { process.processIdentifier }

    /// Asks the server to stop and waits until it has.
    func stop() async {
        guard process.isRunning else { return }
        process.terminate()
        for _ in 0..<300 where process.isRunning {
            try? await Task.sleep(for: .milliseconds(100))
        }
    }
}
