import SocketTalk
import Synchronization
import Testing
import Waiting

@testable import HTTPKit

@Suite("HTTP server limits")
struct HTTPLimitsTests {
    @Test(
        "takes as many connections as the process may open files for, some left for other uses",
        arguments: [
            (20_000, 12_000, nil), (12_256, 12_000, nil), (12_255, 12_000, 11_999),
            (1_024, 12_000, 768), (100, 12_000, 16), (-1, 12_000, nil), (100, 10, nil),
        ] as [(Int, Int, Int?)])
    func descriptors(limit: Int, wanted: Int, fitting: Int?) {
        #expect(ServerCore.connections(limit: limit, wanted: wanted, others: 256) == fitting)
    }

    @Test("answers 408 to a head that does not end, and closes")
    func slowHead() async throws {
        try await withServer {
            // What there is of the head must come before.
            $0.headDeadline = .seconds(2)
        } _: { server, port in
            let client = RawClient(port: port)
            await client.send("GET / HTTP/1.1\r\nHost:")
            let answer = await client.readAll()
            #expect(answer.hasPrefix("HTTP/1.1 408 "))
            #expect(answer.contains("Connection: close"))
            #expect(await server.counters().requestsInFlight == 0)
        }
    }

    @Test("answers 408 to a body that does not come, and counts it out again")
    func slowBody() async throws {
        try await withServer {
            $0.bodyDeadline = .milliseconds(80)
        } _: { server, port in
            let client = RawClient(port: port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc")
            #expect(await client.readAll().hasPrefix("HTTP/1.1 408 "))
            #expect(await server.counters().bodyBytesInFlight == 0)
        }
    }

    @Test("a client that is gone when its answer is written leaves no request behind")
    func clientGoneBeforeAnswer() async throws {
        let mayAnswer = Mutex(false)
        try await withServer { _ in
        } handler: { request in
            while request.path == "/slow", !mayAnswer.withLock(\.self) {
                try? await Task.sleep(for: .milliseconds(5))
            }
            return HTTPResponse(status: 200, text: "done\n")
        } _: { server, port in
            let client = try #require(RawConnection(to: port, from: "127.0.0.1"))
            // An unread answer makes closing a reset, which the server does not see, because it does
            // not read that far ahead.
            for path in ["/", "/slow"] {
                client.send([UInt8]("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            }
            client.send([UInt8](repeating: 120, count: 200_000))
            try await waitUntil("both requests have come") {
                await server.counters().requests == 2
            }
            client.close()
            #expect(await server.counters().requestsInFlight == 1)
            mayAnswer.withLock { $0 = true }
            try await waitUntil("the connection is closed") {
                await server.counters().openConnections == 0
            }
            #expect(await server.counters().requestsInFlight == 0)
        }
    }

    @Test("a handler that hangs up leaves no request behind")
    func hangUp() async throws {
        try await withServer { _ in
        } handler: { _ in
            var response = HTTPResponse(status: 200, text: "")
            response.hangsUp = true
            return response
        } _: { server, port in
            let client = RawClient(port: port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.readAll() == "")
            #expect(await server.counters().requestsInFlight == 0)
        }
    }

    @Test("closes a connection that says nothing, and one that falls silent")
    func idleConnection() async throws {
        try await withServer {
            $0.headDeadline = .milliseconds(60)
        } _: { _, port in
            #expect(await RawClient(port: port).readAll() == "")
        }
        try await withServer {
            $0.idleTimeout = .milliseconds(60)
        } _: { _, port in
            let client = RawClient(port: port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.readAll().hasSuffix("GET / 0\n"))
        }
    }

    @Test("answers 413 to a body over the limit before it has come")
    func largeBody() async throws {
        try await withServer {
            $0.maxBodyBytes = 100
        } _: { server, port in
            let client = RawClient(port: port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n")
            #expect(await client.read(until: "100 bytes.\n").hasPrefix("HTTP/1.1 413 "))
            let chunked = RawClient(port: port)
            await chunked.send(
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n")
            #expect(await chunked.read(until: "100 bytes.\n").hasPrefix("HTTP/1.1 413 "))
            #expect(await server.counters().requests == 0)
        }
    }

    @Test("lets a client that sends on regardless read its refusal")
    func refusalUnderUpload() async throws {
        try await withServer {
            $0.maxBodyBytes = 100
        } _: { _, port in
            let client = RawClient(port: port)
            let isTaken = await client.send(
                [UInt8]("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n".utf8)
                    + [UInt8](repeating: 0, count: 4_000_000))
            #expect(isTaken)
            #expect(await client.read(until: "100 bytes.\n").hasPrefix("HTTP/1.1 413 "))
        }
        // As a proxy does that has kept the whole body: it reads once it could send all.
        try await withServer { _, port in
            let client = RawClient(port: port)
            let count = (17 << 20)
            let isTaken = await client.send(
                [UInt8]("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(count)\r\n\r\n".utf8)
                    + [UInt8](repeating: 0, count: count))
            #expect(isTaken)
            #expect(await client.readAll().hasPrefix("HTTP/1.1 413 "))
        }
    }

    @Test("answers 429 to one connection too many from an address, with Retry-After")
    func perAddress() async throws {
        try await withServer {
            $0.maxConnectionsPerAddress = 2
        } _: { server, port in
            let first = RawClient(port: port)
            await first.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = await first.read(until: "GET / 0\n")
            let second = RawClient(port: port)
            await second.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = await second.read(until: "GET / 0\n")
            let third = await RawClient(port: port).readAll()
            #expect(third.hasPrefix("HTTP/1.1 429 "))
            #expect(third.contains("Retry-After: 2\r\n"))
            #expect(await server.counters().refusedConnections == 1)
            // The first two are none the worse for it.
            await first.send("GET /again HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await first.read(until: "again 0\n").contains("200 OK"))
        }
    }

    @Test("answers 503 to one connection too many, and serves again when one has gone")
    func total() async throws {
        try await withServer {
            $0.maxConnections = 1
        } _: { server, port in
            let first = RawClient(port: port)
            await first.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            #expect(await RawClient(port: port).readAll().hasPrefix("HTTP/1.1 503 "))
            #expect(await first.readAll().hasSuffix("GET / 0\n"))
            await first.abort()
            try await waitUntil("the first connection is gone") {
                await server.counters().openConnections == 0
            }
            let next = RawClient(port: port)
            await next.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            #expect(await next.readAll().hasSuffix("GET / 0\n"))
        }
    }

    @Test("does not count the addresses of a proxy")
    func exempt() async throws {
        try await withServer {
            $0.maxConnectionsPerAddress = 0
            $0.addressesWithoutLimit = ["127.0.0.1"]
        } _: { _, port in
            let client = RawClient(port: port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            #expect(await client.readAll().contains("200 OK"))
        }
    }

    @Test("answers 503 to more requests and more body bytes than it holds at once")
    func inFlight() async throws {
        let gate = Gate()
        try await withServer {
            $0.maxRequestsInFlight = 1
            $0.maxBodyBytesInFlight = 10
        } handler: { request in
            await gate.wait()
            return await echo(request)
        } _: { _, port in
            let first = RawClient(port: port)
            await first.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
            await gate.waitForArrival()
            let second = RawClient(port: port)
            await second.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let refused = await second.readAll()
            #expect(refused.hasPrefix("HTTP/1.1 503 "))
            #expect(refused.contains("Retry-After: 2\r\n"))
            gate.open()
            #expect(await first.read(until: "POST / 3\n").contains("200 OK"))
            for body in [
                "Content-Length: 11\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a",
            ] {
                let third = RawClient(port: port)
                await third.send("POST / HTTP/1.1\r\nHost: h\r\n" + body)
                #expect(await third.readAll().hasPrefix("HTTP/1.1 503 "))
            }
        }
    }
}

/// Holds handlers until it is opened, and tells when the first has arrived.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var hasArrival = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var arrivals: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Waits for `open`; for ever otherwise, cancelled or not.
    func wait() async {
        await withCheckedContinuation { continuation in
            let (resume, arrivals) = state.withLock { state in
                state.hasArrival = true
                let arrivals = state.arrivals
                state.arrivals = []
                if !state.isOpen { state.waiting.append(continuation) }
                return (state.isOpen, arrivals)
            }
            arrivals.forEach { $0.resume() }
            if resume { continuation.resume() }
        }
    }

    func waitForArrival() async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if !state.hasArrival { state.arrivals.append(continuation) }
                return state.hasArrival
            }
            if isThere { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        waiting.forEach { $0.resume() }
    }
}
