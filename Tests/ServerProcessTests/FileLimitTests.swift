import Foundation
import TestPrograms
import Testing

/// Commands that may not write files as large as they have to.
@Suite("A backup and a restore under a limit on the size of files", .timeLimit(.minutes(3)))
struct FileLimitTests {
    /// Runs the command in a shell.
    /// - Parameter limit: KiB of the largest file; nil sets none.
    private static func run(
        _ words: [String], limit: Int?, in folder: URL
    ) throws -> (code: Int32, text: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        let program = RunningProgram.path("martlet", override: "MARTLET_EXECUTABLE").path
        process.arguments =
            [
                "-c", (limit.map { "ulimit -f \($0); " } ?? "") + #"exec "$@""#, "bash", program,
            ] + words
        process.currentDirectoryURL = folder
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: text, as: UTF8.self))
    }

    @Test("they name the file that they cannot write, and leave nothing of it")
    func limited() async throws {
        let server = try ServerProcess()
        try await server.start()
        #expect(await server.stop() == 0)
        let folder = server.folder
        let location = ["--data", "data", "--dataset", "league"]
        func names(_ path: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(
                atPath: folder.appendingPathComponent(path).path
            ).filter { $0.hasPrefix("b.") || $0.hasPrefix("league.") }.sorted()
        }
        let cut = try Self.run(["backup"] + location + ["--out", "b.one"], limit: 64, in: folder)
        #expect(cut.code == 1)
        #expect(cut.text.contains("“b.one”") && cut.text.contains("ulimit -f"), "\(cut.text)")
        #expect(try names(".") == [])
        let made = try Self.run(["backup"] + location + ["--out", "b.two"], limit: nil, in: folder)
        #expect(made.code == 0, "\(made.text)")
        let before = try names("data")
        let restored = try Self.run(
            ["restore", "--replace"] + location + ["--in", "b.two"], limit: 64, in: folder)
        #expect(restored.code == 1)
        #expect(restored.text.contains("“data/league.sqlite.restoring”"), "\(restored.text)")
        #expect(try names("data") == before, "\(before)")
    }
}
