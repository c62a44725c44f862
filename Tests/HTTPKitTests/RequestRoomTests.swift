import SocketTalk
import Synchronization
import Testing
import Waiting

@testable import HTTPKit

@Suite("Room for requests")
struct RequestRoomTests {
    @Test("no party gets more than its share, and what is given back is free again")
    func shares() {
        var options = HTTPServerOptions()
        options.maxBodyBytes = 10
        options.maxBodyBytesInFlight = 100
        options.maxRequestsInFlight = 6
        var room = RequestRoom(options)
        let (one, other) = (RequestRoom.Party.address("1"), RequestRoom.Party.named("1"))
        room.take(.init(requests: 1, bytes: 20), for: [one, other])
        #expect(room.unreadyReason(for: .init(bytes: 5), of: [one]) == nil)
        #expect(room.unreadyReason(for: .init(bytes: 6), of: [one])?.hasPrefix("You have") == true)
        #expect(
            room.unreadyReason(for: .init(bytes: 6), of: [other])?.hasPrefix("You have") == true)
        #expect(room.unreadyReason(for: .init(bytes: 80), of: []) == nil)
        #expect(room.unreadyReason(for: .init(bytes: 81), of: [])?.hasPrefix("The server") == true)
        #expect(room.unreadyReason(for: .init(requests: 2), of: [one]) == nil)
        #expect(room.unreadyReason(for: .init(requests: 3), of: [one]) != nil)
        #expect(room.unreadyReason(for: .init(requests: 6), of: []) != nil)
        room.giveBack(.init(requests: 1, bytes: 20), of: [one, other])
        #expect(room.unreadyReason(for: .init(requests: 3, bytes: 25), of: [one, other]) == nil)
        #expect(room.partyCount == 0)
    }

    @Test("bodies that are announced and never arrive keep nobody out")
    func announcedBodies() async throws {
        try await withServer {
            $0.maxBodyBytes = 1_000
            $0.maxBodyBytesInFlight = 1_000
            $0.maxRequestsInFlight = 100
        } _: { server, port in
            let silent = (0..<16).map { _ in RawClient(port: port) }
            for client in silent {
                await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n")
            }
            try await waitUntil("all are there") {
                await server.counters().requestsInFlight == silent.count
            }
            let body = String(repeating: "x", count: 1_000)
            let client = RawClient(port: port)
            await client.send(
                "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n"
                    + body)
            #expect(await client.readAll().hasSuffix("POST / 1000\n"))
            await silent[0].send(body)
            #expect(await silent[0].read(until: "POST / 1000\n").contains("200 OK"))
            #expect(await server.counters().bodyBytesInFlight == 0)
        }
    }

    @Test("one address cannot fill the room with what it sends")
    func address() async throws {
        try await withServer {
            $0.maxBodyBytes = 100
            $0.maxBodyBytesInFlight = 10_000
            $0.maxRequestsInFlight = 200
        } _: { server, port in
            // A share is a quarter, 2,500 bytes, and each request holds 99 of them.
            let half =
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n"
                + String(repeating: "x", count: 99)
            let clients = (0..<25).map { _ in RawClient(port: port) }
            for client in clients { await client.send(half) }
            try await waitUntil("all of it is there") {
                await server.counters().bodyBytesInFlight == 25 * 99
            }
            let next = RawClient(port: port)
            await next.send(half)
            let refused = await next.readAll()
            #expect(refused.hasPrefix("HTTP/1.1 503 "))
            #expect(refused.contains("Retry-After: 2\r\n"))
            for client in clients { await client.send("x") }
            for client in clients {
                #expect(await client.read(until: "POST / 100\n").contains("200 OK"))
            }
        }
    }

    @Test("a request that says that it only waits keeps out no other")
    func waitingRequest() async throws {
        let gate = Gate()
        try await withServer {
            $0.maxRequestsInFlight = 1
        } handler: { request in
            if request.path == "/wait" {
                await request.stopCounting()
                await gate.wait()
            }
            return await echo(request)
        } _: { server, port in
            let waiting = (0..<3).map { _ in RawClient(port: port) }
            for (index, client) in waiting.enumerated() {
                await client.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
                try await waitUntil("it waits") {
                    let counters = await server.counters()
                    return counters.requests == index + 1 && counters.requestsInFlight == 0
                }
            }
            let other = RawClient(port: port)
            await other.send("GET /other HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await other.read(until: "other 0\n").contains("200 OK"))
            gate.open()
            for client in waiting {
                #expect(await client.read(until: "wait 0\n").contains("200 OK"))
            }
            #expect(await server.counters().requestsInFlight == 0)
        }
    }
}

@Suite("A client that goes away")
struct AbandonedRequestTests {
    @Test("counts as long as its handler works")
    func countsWhileHandled() async throws {
        let gate = Gate()
        try await withServer {
            $0.maxRequestsInFlight = 1
        } handler: { request in
            if request.path == "/long" { await gate.wait() }
            return await echo(request)
        } _: { server, port in
            let gone = RawClient(port: port)
            await gone.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n")
            try await waitUntil("it is handled") { await server.counters().requests == 1 }
            await gone.abort()
            try await waitUntil("it is gone") { await server.counters().openConnections == 0 }
            let early = RawClient(port: port)
            await early.send("GET /early HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await early.readAll().hasPrefix("HTTP/1.1 503 "))
            gate.open()
            try await waitUntil("its handler has ended") {
                await server.counters().requestsInFlight == 0
            }
            let late = RawClient(port: port)
            await late.send("GET /late HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await late.read(until: "late 0\n").contains("200 OK"))
        }
    }

    @Test("lets go of what its answer holds, as one that takes it does")
    func attachment() async throws {
        let held = Held()
        try await withServer { _ in
        } handler: { request in
            var answer = await echo(request)
            answer.attachment = Held.Piece(held)
            return answer
        } _: { server, port in
            let client = RawClient(port: port)
            await client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.read(until: "a 0\n").contains("200 OK"))
            try await waitUntil("nothing is held") { held.count.load(ordering: .relaxed) == 0 }
            #expect(held.total.load(ordering: .relaxed) == 1)
        }
    }

    private final class Held: Sendable {
        let count = Atomic(0)
        let total = Atomic(0)

        final class Piece: Sendable {
            let held: Held

            init(_ held: Held) {
                self.held = held
                held.count.add(1, ordering: .relaxed)
                held.total.add(1, ordering: .relaxed)
            }

            deinit { held.count.subtract(1, ordering: .relaxed) }
        }
    }
}

@Suite("The gate before bodies")
struct HTTPGateTests {
    private static func withGate(
        _ configure: (inout HTTPServerOptions) -> Void = { _ in },
        _ body: (HTTPServer, Int) async throws -> Void
    ) async throws {
        var options = HTTPServerOptions()
        configure(&options)
        let server = HTTPServer(options: options) { request in
            guard let name = request.headers["x-name"] else {
                return .refused(HTTPResponse(status: 401, text: "Who are you?\n"))
            }
            return .admitted(party: name)
        } handler: {
            await echo($0)
        }
        let port = try await server.start()
        do {
            try await body(server, port)
        } catch {
            await server.stop(grace: .zero)
            throw error
        }
        await server.stop(grace: .zero)
    }

    @Test("refuses from the head alone, also a client that sends its whole body before it reads")
    func refusesFromHead() async throws {
        try await Self.withGate { server, port in
            let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
            for framing in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
                let client = RawClient(port: port)
                await client.send(head + framing + "\r\n\r\n")
                let answer = await client.readAll()
                #expect(answer.hasPrefix("HTTP/1.1 401 "))
                #expect(answer.contains("Connection: close"))
                #expect(answer.hasSuffix("Who are you?\n"))
            }
            let eager = RawClient(port: port)
            await eager.send(
                [UInt8]((head + "Content-Length: 9000000\r\n\r\n").utf8)
                    + [UInt8](repeating: 0, count: 9_000_000))
            #expect(await eager.readAll().hasPrefix("HTTP/1.1 401 "))
            let counters = await server.counters()
            #expect(counters.requests == 0)
            #expect(counters.requestsInFlight == 0)
        }
    }

    @Test("lets in who may, after a word of going on, and leaves alone a body that is here")
    func admits() async throws {
        try await Self.withGate { _, port in
            let client = RawClient(port: port)
            await client.send(
                """
                POST /a HTTP/1.1\r\nHost: h\r\nX-Name: ada\r\nExpect: 100-continue\r\n\
                Content-Length: 3\r\n\r\n
                """)
            #expect(await client.read(until: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
            await client.send("abcPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nde")
            let answers = await client.read(until: "POST /b 2\n")
            #expect(answers.contains("POST /a 3\n"))
        }
    }

    @Test("a party has its share, whatever addresses it comes from")
    func party() async throws {
        try await Self.withGate {
            $0.addressesWithoutLimit = ["127.0.0.1"]
            $0.maxRequestsInFlight = 4
        } _: { server, port in
            func begin(_ name: String) async -> RawClient {
                let client = RawClient(port: port)
                await client.send(
                    "POST / HTTP/1.1\r\nHost: h\r\nX-Name: \(name)\r\nContent-Length: 3\r\n\r\na")
                return client
            }
            let first = await begin("mallory")
            let second = await begin("mallory")
            try await waitUntil("both are there") {
                await server.counters().bodyBytesInFlight == 2
            }
            #expect(await begin("mallory").readAll().hasPrefix("HTTP/1.1 503 "))
            let other = await begin("ada")
            await other.send("bc")
            #expect(await other.read(until: "POST / 3\n").contains("200 OK"))
            for client in [first, second] {
                await client.send("bc")
                #expect(await client.read(until: "POST / 3\n").contains("200 OK"))
            }
            #expect(await server.counters().bodyBytesInFlight == 0)
        }
    }
}
