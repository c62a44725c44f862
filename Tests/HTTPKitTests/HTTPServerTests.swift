import HTTPKit
import Synchronization
import Testing

/// Starts a server on a free port, runs `body` against it and stops it.
func withServer(
    _ configure: (inout HTTPServerOptions) -> Void = { _ in },
    handler: @escaping HTTPServer.Handler = echo,
    _ body: (HTTPServer, Int) async throws -> Void
) async throws {
    var options = HTTPServerOptions()
    configure(&options)
    let server = HTTPServer(options: options, handler: handler)
    let port = try await server.start()
    do {
        try await body(server, port)
    } catch {
        await server.stop(grace: .zero)
        throw error
    }
    await server.stop(grace: .zero)
}

/// Answers with the method, the target and the number of bytes of the body.
@Sendable func echo(_ request: HTTPRequest) async -> HTTPResponse {
    let target = request.path + (request.query.map { "?" + $0 } ?? "")
    return HTTPResponse(
        status: 200, text: "\(request.method) \(target) \(request.body.count)\n")
}

@Suite("HTTP server")
struct HTTPServerTests {
    @Test("answers a request and keeps the connection for the next")
    func keepAlive() async throws {
        try await withServer { _, port in
            let client = RawClient(port: port)
            await client.send("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n")
            let first = await client.read(until: "GET /a?b=c 0\n")
            #expect(first.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(first.contains("Date: "))
            #expect(first.hasSuffix("GET /a?b=c 0\n"))
            await client.send(
                "POST /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc")
            let second = await client.readAll()
            #expect(second.contains("Connection: close"))
            #expect(second.hasSuffix("POST /p 3\n"))
        }
    }

    @Test("answers pipelined requests in their order")
    func pipelining() async throws {
        try await withServer { _, port in
            let client = RawClient(port: port)
            var text = ""
            for number in 1...20 {
                text += "POST /\(number) HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
            }
            await client.send(text)
            let answers = await client.read(until: " 5\n", count: 20)
            let order = answers.lines.compactMap { line in
                line.hasPrefix("POST") ? line : nil
            }
            #expect(order == (1...20).map { "POST /\($0) 5" })
        }
    }
}
