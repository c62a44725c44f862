import HTTPKit
import SocketTalk
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

@Suite("HTTP exchanges")
struct HTTPExchangeTests {
    @Test("reads chunked and large bodies, whatever follows them")
    func bodies() async throws {
        try await withServer { _, port in
            let client = RawClient(port: port)
            await client.send(
                "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n")
            let answers = await client.read(until: "GET /next 0\n")
            #expect(answers.contains("POST /c 7\n"))
            await client.send(
                [UInt8]("PUT /l HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n".utf8)
                    + [UInt8](repeating: 1, count: 3_000_000))
            #expect(await client.read(until: "0\n").hasSuffix("PUT /l 3000000\n"))
        }
    }

    @Test("says 100 Continue to a client that waits for it, and not to one that did not")
    func expectation() async throws {
        try await withServer { _, port in
            let client = RawClient(port: port)
            let head =
                "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            await client.send(head)
            #expect(await client.read(until: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
            await client.send("ab")
            #expect(await client.read(until: "POST / 2\n").hasPrefix("HTTP/1.1 200 "))
            await client.send(head + "ab")
            #expect(await client.read(until: "POST / 2\n").hasPrefix("HTTP/1.1 200 "))
        }
    }

    @Test("sends no body to HEAD, but its length; and shows unknown methods to the handler")
    func methods() async throws {
        try await withServer { _, port in
            let client = RawClient(port: port)
            await client.send(
                "HEAD /h HTTP/1.1\r\nHost: h\r\n\r\nBREW /b HTTP/1.1\r\nHost: h\r\n\r\n")
            let answers = await client.read(until: "BREW /b 0\n")
            #expect(answers.occurrences("Content-Length: 10\r\n") == 2)
            #expect(!answers.contains("HEAD /h"))
        }
    }

    @Test("writes answers larger than any socket buffer, piece by piece")
    func largeAnswer() async throws {
        try await withServer { _ in
        } handler: { _ in
            HTTPResponse(
                status: 200,
                body: (0..<64).map { [UInt8](repeating: UInt8(65 + $0 % 26), count: 200_000) },
                closesConnection: true)
        } _: { _, port in
            let client = RawClient(port: port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let answer = await client.readAll()
            #expect(answer.contains("Content-Length: 12800000\r\n"))
            #expect(answer.utf8.count > 12_800_000)
            #expect(answer.hasSuffix("LLL"))
        }
    }

    @Test("cannot be made to add headers by what a handler puts into one")
    func headerInjection() async throws {
        try await withServer { _ in
        } handler: { _ in
            HTTPResponse(status: 204, headers: [HTTPField("X", "a\r\nSet-Cookie: b")])
        } _: { _, port in
            let client = RawClient(port: port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let answer = await client.read(until: "\r\n\r\n")
            #expect(answer.contains("X: a  Set-Cookie: b\r\n"))
            #expect(!answer.contains("Content-Length"))
        }
    }

    @Test("cancels the handler when the client goes away")
    func abort() async throws {
        let gate = Gate()
        let cancelled = Gate()
        try await withServer { _ in
        } handler: { _ in
            await withTaskCancellationHandler {
                await gate.wait()
            } onCancel: {
                gate.open()
                cancelled.open()
            }
            return HTTPResponse(status: 200)
        } _: { server, port in
            let client = RawClient(port: port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            await gate.waitForArrival()
            await client.abort()
            await cancelled.wait()
            #expect(await server.counters().abortedRequests == 1)
            #expect(await server.counters().openConnections == 0)
        }
    }

    @Test("after a refused request nothing that follows on the connection is answered")
    func smuggling() async throws {
        try await withServer { server, port in
            let client = RawClient(port: port)
            await client.send(
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\n"
                    + "abcdGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
            let answer = await client.readAll()
            #expect(answer.hasPrefix("HTTP/1.1 400 "))
            #expect(answer.occurrences("HTTP/1.1 ") == 1)
            #expect(await server.counters().requests == 0)
        }
    }

    @Test("stop answers what has begun, closes what is idle, and takes nothing new")
    func stop() async throws {
        let gate = Gate()
        try await withServer { _ in
        } handler: { request in
            if request.path == "/slow" { await gate.wait() }
            return await echo(request)
        } _: { server, port in
            let idle = RawClient(port: port)
            await idle.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = await idle.read(until: "GET / 0\n")
            let busy = RawClient(port: port)
            await busy.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
            await gate.waitForArrival()
            async let stopped: Void = server.stop(grace: .seconds(20))
            #expect(await idle.readAll() == "")
            gate.open()
            let answer = await busy.readAll()
            #expect(answer.contains("Connection: close"))
            #expect(answer.hasSuffix("GET /slow 0\n"))
            await busy.abort()
            await stopped
        }
    }

    @Test("stop gives up on what outlasts its grace")
    func grace() async throws {
        let gate = Gate()
        try await withServer { _ in
        } handler: { request in
            await withTaskCancellationHandler {
                await gate.wait()
            } onCancel: {
                gate.open()
            }
            return await echo(request)
        } _: { server, port in
            let busy = RawClient(port: port)
            await busy.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
            await gate.waitForArrival()
            await server.stop(grace: .milliseconds(50))
            #expect(await busy.readAll() == "")
        }
    }

    @Test("says why it cannot start")
    func startFailures() async throws {
        try await withServer { _, port in
            var options = HTTPServerOptions()
            options.port = port
            let second = HTTPServer(options: options, handler: echo)
            let taken = await #expect(throws: HTTPServerError.self) { try await second.start() }
            #expect(taken?.message.contains("port \(port)") == true)
            options.host = "no such host"
            let nowhere = HTTPServer(options: options, handler: echo)
            await #expect(throws: HTTPServerError.self) { try await nowhere.start() }
            options.tls = .init(certificatePath: "/nonexistent", keyPath: "/nonexistent")
            let keyless = HTTPServer(options: options, handler: echo)
            await #expect(throws: HTTPServerError.self) { try await keyless.start() }
        }
    }
}
