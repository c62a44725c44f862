import Foundation
import Martlet
import MartletCore
import TestPrograms

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `martlet serve`, on a port that stays the same when it is killed and started again.
actor ServerProcess {
    static let token = "process-token"
    static let schema = """
        CREATE TABLE marks (
            id INTEGER PRIMARY KEY, writer INTEGER NOT NULL, number INTEGER NOT NULL,
            edits INTEGER NOT NULL
        );
        CREATE TABLE notes (
            id INTEGER PRIMARY KEY, mark INTEGER NOT NULL REFERENCES marks(id),
            number INTEGER NOT NULL
        );
        """

    /// The server did not come up.
    struct NotListening: Error, CustomStringConvertible {
        let description: String
    }

    nonisolated let folder: URL
    private var program: RunningProgram?
    private var port = 0
    /// Further options of the command.
    private let options: [String]

    /// - Parameter seeding: What is given as `--seeding`; nil leaves it out.
    init(seeding: String? = nil) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-process-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let plan = folder.appendingPathComponent("seeding.json")
        options = seeding == nil ? [] : ["--seeding", plan.path, "--snapshot-every", "1"]
        try Data((seeding ?? "").utf8).write(to: plan)
        try Data(Self.schema.utf8).write(to: schemaFile)
    }

    deinit {
        program?.kill()
        try? FileManager.default.removeItem(at: folder)
    }

    nonisolated var schemaFile: URL { folder.appendingPathComponent("schema.sql") }
    private nonisolated var log: URL { folder.appendingPathComponent("server.log") }

    var address: URL {
        get throws {
            guard port > 0, let address = URL(string: "http://127.0.0.1:\(port)") else {
                throw NotListening(description: "The server was not started.")
            }
            return address
        }
    }

    /// Starts it and waits until it listens.
    func start() async throws {
        let program = try RunningProgram(
            RunningProgram.path("martlet", override: "MARTLET_EXECUTABLE"),
            [
                "serve", "--data", folder.appendingPathComponent("data").path, "--schema",
                schemaFile.path, "--port", String(port), "--token", "league:\(Self.token)",
            ] + options, log: log)
        self.program = program
        for await line in program.lines where line.contains("listening on") {
            guard let found = line.split(separator: ":").last.flatMap({ Int($0) }) else { break }
            port = found
            return
        }
        let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
        throw NotListening(
            description: "The server did not say that it listens:\n\(text.suffix(2_000))")
    }

    /// Ends it as a crash would, and waits until it is gone.
    func kill() async {
        guard let program else { return }
        program.kill()
        _ = await program.end()
        self.program = nil
    }

    /// Ends it in good order.
    /// - Returns: The exit status.
    func stop() async -> Int32 {
        guard let program else { return -1 }
        program.terminate()
        let status = await program.end()
        self.program = nil
        return status
    }

    /// A device's file in the server's temporary folder.
    nonisolated func file(_ name: String) -> String {
        folder.appendingPathComponent("\(name).sqlite").path
    }

    /// A device in this process.
    func client(_ name: String) async throws -> MartletClient {
        var options = ClientOptions()
        options.node.backoff.first = 20
        options.node.backoff.longest = 200
        return try await MartletClient.open(
            path: file(name), schema: Self.schema, server: try address, token: Self.token,
            options: options)
    }

    /// How many change sets came to the writer, those that came again among them.
    func setsReceived() async throws -> Int {
        let (data, _) = try await URLSession.shared.data(
            from: try address.appendingPathComponent("metrics"))
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
        let line = lines.first { $0.hasPrefix("martlet_batch_sets_sum ") }
        return line.flatMap { Int($0.split(separator: " ")[1]) } ?? -1
    }
}
