import Foundation
import HTTPKit
import SocketTalk
import Testing
import Waiting

@testable import MartletServer

@Suite("Deltas over HTTP")
struct DeltaStreamTests {
    private static let bearer = "Authorization: Bearer secret"

    private static func team(
        _ name: String, sequence: Int, device: String = "device-1", since: Int = 0
    ) -> String {
        """
        {"clientId": "\(device)", "protocol": 1, "maxRevision": \(since), "changeSets": [
          {"identifier": "\(device)-\(sequence)", "sequence": \(sequence), "seen": 0,
           "types": ["teams"],
           "teams": {"create": [-\(sequence)], "update": [], "delete": [],
                     "attributes": {"-\(sequence)": {"name": "\(name)"}}}}]}
        """
    }

    @Test("come once for a poll, from any version, in whole change sets")
    func poll() async throws {
        let live = try await LiveServer()
        _ = try await live.sync(ServerTests.create)
        _ = try await live.sync(Self.team("Bears", sequence: 2))
        let all = try await live.request("GET", "/deltas?since=0", headers: [Self.bearer])
        #expect(all.status == 200)
        #expect(try all.member("from") == 0)
        #expect(try all.member("nextVersion") == 2)
        let deltas = try #require(try all.member("deltas") as [[String: Any]]?)
        #expect(deltas.map { $0["e"] as? String } == ["teams", "players", "teams"])
        #expect(deltas.map { $0["v"] as? Int } == [1, 1, 2])
        #expect(deltas.map { $0["op"] as? String } == ["upsert", "upsert", "upsert"])
        #expect(deltas[2]["eid"] as? String == "2")
        #expect((deltas[2]["p"] as? String)?.contains(#""name":"Bears""#) == true)
        #expect(deltas[0]["set"] == nil)
        let rest = try await live.request("GET", "/deltas?since=1", headers: [Self.bearer])
        #expect(((try rest.member("deltas")) as [[String: Any]]?)?.count == 1)
        let none = try await live.request("GET", "/deltas?since=2", headers: [Self.bearer])
        #expect(((try none.member("deltas")) as [[String: Any]]?)?.isEmpty == true)
        #expect(try none.member("nextVersion") == 2)
        await live.stop()
    }

    @Test("tell a device which of them are its own, with the ids it gave")
    func own() async throws {
        let live = try await LiveServer()
        _ = try await live.sync(Self.team("Ants", sequence: 1))
        _ = try await live.sync(Self.team("Bees", sequence: 1, device: "device-2"))
        // Once for a stranger, so that a batch for all is at hand.
        _ = try await live.request("GET", "/deltas?since=0", headers: [Self.bearer])
        let mine = try await live.request(
            "GET", "/deltas?since=0&client=device-2", headers: [Self.bearer])
        let deltas = try #require(try mine.member("deltas") as [[String: Any]]?)
        #expect(deltas.map { $0["set"] as? String } == [nil, "device-2-1"])
        #expect(deltas[1]["old"] as? Int == -1)
        await live.stop()
    }

    @Test("a long poll ends with the next change, or empty when its time is up")
    func longPoll() async throws {
        let live = try await LiveServer()
        async let waiting = live.request(
            "GET", "/deltas?since=0&wait=30", headers: [Self.bearer])
        try await Self.listeners(1, live)
        _ = try await live.sync(Self.team("Cats", sequence: 1))
        let answer = try await waiting
        #expect(answer.body.contains("Cats"))
        let late = try await live.request(
            "GET", "/deltas?since=1&wait=1", headers: [Self.bearer])
        #expect(late.status == 200)
        #expect(try late.member("nextVersion") == 1)
        await live.stop()
    }

    @Test("a long poll whose token is revoked meanwhile gets nothing")
    func revokedPoll() async throws {
        let live = try await LiveServer()
        let store = try TokenStore(directory: live.folder.path)
        let made = try store.create(dataSet: "league", now: 1)
        async let waiting = live.request(
            "GET", "/deltas?since=0&wait=30", headers: ["Authorization: Bearer \(made.token)"])
        try await Self.listeners(1, live)
        #expect(try store.revoke(made.record.identifier, now: 2))
        _ = try await live.sync(Self.team("Cats", sequence: 1))
        let answer = try await waiting
        #expect(answer.status == 401)
        #expect(!answer.body.contains("Cats"))
        await live.stop()
    }

    @Test("long polls keep out no other request, however many wait")
    func manyPolls() async throws {
        let live = try await LiveServer { $0.http.maxRequestsInFlight = 2 }
        let path = "/deltas?since=0&wait=60"
        let clients = (0..<6).map { _ in RawClient(port: live.port) }
        for (index, client) in clients.enumerated() {
            await client.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\(Self.bearer)\r\n\r\n")
            try await Self.listeners(index + 1, live)
        }
        #expect(try await live.request("GET", "/healthz").status == 200)
        _ = try await live.sync(Self.team("Cats", sequence: 1))
        for client in clients {
            #expect(await client.read(until: "Cats").contains("200 OK"))
        }
        await live.stop()
    }

    /// Waits until so many requests wait for something new.
    private static func listeners(_ count: Int, _ live: LiveServer) async throws {
        try await waitUntil("\(count) listen") { await live.server.waitingListeners == count }
    }

    @Test("a stream sends what is missed, then each change as it happens, and resumes")
    func streamSendsAndResumes() async throws {
        let live = try await LiveServer()
        _ = try await live.sync(Self.team("Dogs", sequence: 1))
        let client = RawClient(port: live.port)
        await client.send(
            """
            GET /deltas?since=0 HTTP/1.1\r\nHost: h\r\n\(Self.bearer)\r\n\
            Accept: text/event-stream\r\n\r\n
            """)
        var seen = await client.read(until: "id: 1\n")
        #expect(seen.contains("Content-Type: text/event-stream"))
        #expect(seen.contains("Transfer-Encoding: chunked"))
        _ = try await live.sync(Self.team("Eels", sequence: 2))
        seen = await client.read(until: "id: 2\n")
        await client.abort()
        let again = RawClient(port: live.port)
        await again.send(
            """
            GET /deltas?since=0 HTTP/1.0\r\n\(Self.bearer)\r\nLast-Event-ID: 1\r\n\
            Accept: text/event-stream\r\n\r\n
            """)
        let resumed = await again.read(until: "id: 2\n")
        #expect(resumed.contains("Eels"))
        #expect(!resumed.contains("Dogs"))
        #expect(!resumed.contains("chunked"))
        await live.stop()
        // The server's stop ended the stream in good order.
        _ = await again.readAll()
    }

    @Test("a sign of life says when it was given")
    func signs() async throws {
        let live = try await LiveServer { $0.heartbeat = .milliseconds(20) }
        let client = RawClient(port: live.port)
        await client.send(
            """
            GET /deltas?since=0 HTTP/1.0\r\n\(Self.bearer)\r\nAccept: text/event-stream\r\n\r\n
            """)
        _ = await client.read(until: "retry: 2000\n\n")
        let seen = await client.read(until: "\n\n:1")
        let times = seen.split(separator: "\n\n").filter { $0.hasPrefix(":") }
            .compactMap { Int64($0.dropFirst()) }
        #expect(times == times.sorted() && times.first ?? 0 >= 20)
        await live.stop()
        _ = await client.readAll()
    }

    @Test("a listener that reads slowly is held up, and catches up whole")
    func slowStreamListener() async throws {
        let live = try await LiveServer()
        let client = RawClient(port: live.port)
        await client.send(
            """
            GET /deltas?since=0 HTTP/1.0\r\n\(Self.bearer)\r\nAccept: text/event-stream\r\n\r\n
            """)
        let name = String(repeating: "x", count: 200_000)
        for number in 1...20 {
            _ = try await live.sync(
                Self.team("\(number)\(name)", sequence: number, since: number - 1))
        }
        // 4 MB are more than the socket's and the server's buffers hold.
        let seen = await client.read(atLeast: 20 * name.utf8.count + 2_000)
        let digits = seen.split(separator: UInt8(ascii: "x")).map {
            String(decoding: $0.suffix(12), as: UTF8.self)
        }
        for number in 1...20 {
            #expect(digits.contains { $0.hasSuffix("\"\(number)") }, "\(number)")
        }
        await live.stop()
    }

    @Test(
        "bad queries are answered with a sentence",
        arguments: [
            ("/deltas", 400), ("/deltas?since=x", 400), ("/deltas?since=-1", 400),
            ("/deltas?since=0&since=0", 400), ("/deltas?since=0&until=1", 400),
            ("/deltas?since=0&wait=61", 400), ("/deltas?since=%zz", 400),
            ("/deltas?since=0&client=", 400), ("/deltas?since=1", 409),
            ("/deltas?since=0&dataSet=other", 409), ("/deltas?since=0&lineage=other", 409),
            ("/deltas?since=9223372036854775808", 400),
        ])
    func bad(path: String, status: Int) async throws {
        let live = try await LiveServer()
        for accept in ["application/json", "text/event-stream"] {
            let answer = try await live.request(
                "GET", path, headers: [Self.bearer, "Accept: \(accept)"])
            #expect(answer.status == status)
            #expect(answer.headers["content-type"] == "application/problem+json")
        }
        #expect(try await live.request("GET", "/deltas?since=0").status == 401)
        #expect(try await live.request("POST", path, headers: [Self.bearer]).status == 405)
        await live.stop()
    }
}
