import CLoad
import Foundation
import MartletServer

/// The part of the server: this program, started again as a process of its own.
enum ServerRole {
    static let name = "run-server"
    static let token = "benchmark-token"

    /// Serves a folder until standard input ends.
    static func run(folder: String) async throws {
        var configuration = ServerConfiguration(
            dataDirectory: folder, schema: Organisation.schema)
        configuration.tokens = [try FixedToken(dataSet: "league", token: token)]
        try await serve(configuration)
    }

    /// Serves until standard input ends.
    static func serve(_ configuration: ServerConfiguration) async throws {
        var configuration = configuration
        configuration.log = .silent
        let server = MartletServer(configuration)
        let port = try await server.start()
        FileHandle.standardOutput.write(Data("\(port)\n".utf8))
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                _ = try? FileHandle.standardInput.readToEnd()
                continuation.resume()
            }
        }
        await server.stop()
    }
}

/// The part of the floor: libevent's own HTTP server, which answers and does nothing else.
enum FloorRole {
    static let name = "run-floor"

    static func run(answerBytes: Int) throws {
        guard floor_http(answerBytes) == 0 else {
            throw BenchmarkFailure("The bare libevent server did not start.")
        }
    }
}
