internal import Foundation
internal import HTTPKit
internal import Synchronization

/// A server that plays a script, for tests of a client. It answers exactly as the script says, in
/// time, order and bytes, right or wrong, and it records the requests.
///
/// If the script says nothing about a request, the server behaves correctly: it accepts sets, with
/// consecutive revisions and permanent ids, and sends them to all devices. `docs/mock.md` describes
/// the script. The server keeps everything in memory and listens on this machine only.
///
/// ```swift
/// let server = MockServer(try MockScript(json: [UInt8](script.utf8)))
/// let port = try await server.start()
/// // … the client under test uses http://127.0.0.1:port
/// print(server.verdict.complaints)
/// await server.stop()
/// ```
public final class MockServer: Sendable {
    private let book: MockBook
    private let port: Int
    private let http = Mutex<HTTPServer?>(nil)

    /// - Parameters:
    ///   - script: The script.
    ///   - port: The port; 0 for a free one.
    public init(_ script: MockScript, port: Int = 0) {
        book = MockBook(script)
        self.port = port
    }

    /// Starts listening.
    /// - Returns: The port.
    /// - Throws: `HTTPServerError` if the port cannot be used.
    public func start() async throws -> Int {
        var options = HTTPServerOptions()
        options.port = port
        let player = MockPlayer(book: book)
        let server = HTTPServer(options: options) { await player.answer($0) }
        let found = try await server.start()
        http.withLock { $0 = server }
        return found
    }

    /// Stops the server at once, also during a request.
    public func stop() async {
        let server = http.withLock { http in
            defer { http = nil }
            return http
        }
        await server?.stop(grace: .zero)
    }

    /// The requests so far, in the order of their answers.
    public var requests: [MockRequest] { book.requests }

    /// The expectations of the script that are not met so far.
    public var verdict: MockVerdict { book.verdict }

    /// Plays a script until the process is asked to end (SIGTERM, SIGINT), the task is cancelled,
    /// or standard input ends and `endsWithInput` is true.
    /// - Parameters:
    ///   - script: The script.
    ///   - port: The port; 0 for a free one.
    ///   - endsWithInput: True to end when standard input ends: a program that started this one
    ///     with a pipe, and crashes, leaves no server behind.
    ///   - started: Called with the port once the server listens.
    /// - Returns: The differences between the requests and the script.
    /// - Throws: `HTTPServerError` if the server cannot start.
    public static func run(
        _ script: MockScript, port: Int = 0, endsWithInput: Bool = false,
        started: @Sendable (_ port: Int) -> Void = { _ in }
    ) async throws -> MockVerdict {
        // Before the start, so that a signal that comes early is not lost.
        let signal = await TerminationSignal()
        let server = MockServer(script, port: port)
        do {
            started(try await server.start())
        } catch {
            await signal.end()
            throw error
        }
        if endsWithInput {
            Thread.detachNewThread {
                _ = try? FileHandle.standardInput.readToEnd()
                Task { await signal.end() }
            }
        }
        _ = await signal.wait()
        await server.stop()
        return server.verdict
    }
}
