import Foundation
import TestPrograms

/// `martlet mock` as a process of its own, on one script.
struct MockProcess: Sendable {
    /// It did not come up.
    struct NotListening: Error, CustomStringConvertible {
        let description: String
    }

    /// What its end said.
    struct End: Sendable {
        /// 0 where all that the script expects has happened.
        let status: Int32
        /// What it wrote to standard error.
        let said: String
    }

    /// Where it listens.
    let address: URL
    private let program: RunningProgram
    private let log: URL

    /// Starts it and waits until it listens.
    /// - Parameter folder: Takes the script and what is written to standard error.
    init(script: String, folder: URL) async throws {
        let file = folder.appendingPathComponent("script.json")
        try Data(script.utf8).write(to: file)
        log = folder.appendingPathComponent("mock.log")
        program = try RunningProgram(
            RunningProgram.path("martlet", override: "MARTLET_EXECUTABLE"),
            ["mock", "--script", file.path, "--end-with-input"], log: log)
        for await line in program.lines {
            guard let range = line.range(of: "listening on "),
                let found = URL(string: String(line[range.upperBound...]))
            else { continue }
            address = found
            return
        }
        throw NotListening(
            description: (try? String(contentsOf: log, encoding: .utf8)) ?? "It said nothing.")
    }

    /// Ends it in good order.
    func end() async -> End {
        program.terminate()
        let status = await program.end()
        return End(status: status, said: (try? String(contentsOf: log, encoding: .utf8)) ?? "")
    }
}
