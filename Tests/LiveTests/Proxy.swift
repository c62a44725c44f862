import Foundation
import HTTPKit
import Synchronization

@testable import Martlet

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What stands between a device and the server: counts what passes, and can be cut off, or answer
/// in the server's place.
actor Proxy {
    /// What is counted, and what the stream's requests meet.
    final class Traffic: Sendable {
        struct State {
            var requests: [String: Int] = [:]
            var open = 0
            /// Answers the stream's requests in the server's place.
            var refusal: Int?
            /// Lets nothing of the stream through, as a proxy that waits for its end.
            var holdsBack = false
            /// The most bytes of a body; a larger one is refused with a page.
            var most = Int.max
            /// The number of refused bodies.
            var refusals = 0
        }

        let state = Mutex(State())

        /// Requests for a path, since the beginning.
        func requests(_ path: String) -> Int { state.withLock { $0.requests[path] ?? 0 } }
        /// Streams under way.
        var open: Int { state.withLock { $0.open } }
    }

    nonisolated let traffic = Traffic()
    private let target: URL
    private let session = StreamingSession()
    private var server: HTTPServer?
    private var port = 0

    init(to target: URL) {
        self.target = target
    }

    /// Listens; after the first time on the same port.
    func start() async throws {
        var options = HTTPServerOptions()
        options.port = port
        let (traffic, target, session) = (traffic, target, session)
        let server = HTTPServer(options: options) { request in
            traffic.state.withLock { $0.requests[request.path, default: 0] += 1 }
            do {
                if request.path == "/deltas" {
                    if let status = traffic.state.withLock({ $0.refusal }) {
                        return HTTPResponse(status: status, text: "no stream here\n")
                    }
                    return try await Self.stream(request, to: target, session, traffic)
                }
                let isTooMuch = traffic.state.withLock { state in
                    guard request.body.count > state.most else { return false }
                    state.refusals += 1
                    return true
                }
                if isTooMuch { return HTTPResponse(status: 413, text: "<html>too large\n") }
                return try await Self.exchange(request, to: target)
            } catch {
                return HTTPResponse(status: 502, text: "\(error)\n")
            }
        }
        port = try await server.start()
        self.server = server
    }

    /// Cuts all connections, and refuses new ones.
    func cut() async {
        await server?.stop(grace: .zero)
        server = nil
    }

    func transport(token: String = LiveServer.token) throws -> URLSessionTransport {
        guard let url = URL(string: "http://127.0.0.1:\(port)") else { throw URLError(.badURL) }
        return try URLSessionTransport(server: url, token: token)
    }

    private static func address(_ request: HTTPRequest, _ target: URL) throws -> URL {
        let query = request.query.map { "?" + $0 } ?? ""
        guard let url = URL(string: target.absoluteString + request.path + query) else {
            throw URLError(.badURL)
        }
        return url
    }

    private static func exchange(_ request: HTTPRequest, to target: URL) async throws
        -> HTTPResponse
    {
        var outgoing = URLRequest(url: try address(request, target))
        outgoing.httpMethod = request.method
        outgoing.httpBody = Data(request.body)
        for name in ["content-type", "content-encoding", "authorization"] {
            outgoing.setValue(request.headers[name], forHTTPHeaderField: name)
        }
        outgoing.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        let (data, response) = try await URLSession.shared.data(for: outgoing)
        let answer = response as? HTTPURLResponse
        let type = answer?.value(forHTTPHeaderField: "Content-Type") ?? "application/json"
        var headers = [HTTPField("Content-Type", type)]
        if let piece = answer?.value(forHTTPHeaderField: "Martlet-Answer") {
            headers.append(HTTPField("Martlet-Answer", piece))
        }
        return HTTPResponse(
            status: answer?.statusCode ?? 502, headers: headers, body: [[UInt8](data)])
    }

    private static func stream(
        _ request: HTTPRequest, to target: URL, _ session: StreamingSession, _ traffic: Traffic
    ) async throws -> HTTPResponse {
        var outgoing = StreamingRequest(url: try address(request, target))
        for name in ["accept", "authorization"] { outgoing.headers[name] = request.headers[name] }
        let answer = try await session.start(outgoing)
        let type = answer.headers["content-type"] ?? ""
        var response = HTTPResponse(
            status: answer.status, headers: [HTTPField("Content-Type", type)])
        response.stream = { writer in
            traffic.state.withLock { $0.open += 1 }
            defer { traffic.state.withLock { $0.open -= 1 } }
            for try await chunk in answer.chunks {
                if traffic.state.withLock({ $0.holdsBack }) { continue }
                try await writer.write(chunk)
            }
        }
        return response
    }
}
