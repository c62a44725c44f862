import Foundation
import HTTPKit
import MartletModel
import SocketTalk
import Testing
import Waiting
import WebSocketKit

@testable import MartletServer

@Suite("Deltas over WebSocket")
struct DeltaSocketTests {
    private static let bearer = "Authorization: Bearer secret"

    private static func socket(_ live: LiveServer) -> TestSocket {
        TestSocket(RawClient(port: live.port))
    }

    /// A change set that makes a team, as a request.
    private static func team(_ name: String, sequence: Int, since: Int = 0) -> String {
        """
        {"clientId": "device-1", "protocol": 1, "maxRevision": \(since), "changeSets": [
          {"identifier": "set-\(sequence)", "sequence": \(sequence), "seen": 0,
           "types": ["teams"],
           "teams": {"create": [-\(sequence)], "update": [], "delete": [],
                     "attributes": {"-\(sequence)": {"name": "\(name)"}}}}]}
        """
    }

    private static func object(_ text: String?) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data((text ?? "").utf8))
        return try #require(object as? [String: Any])
    }

    @Test("what is missed comes first, then each change, and a change set goes up the same way")
    func live() async throws {
        let live = try await LiveServer()
        _ = try await live.sync(Self.team("Ants", sequence: 1))
        let socket = Self.socket(live)
        #expect(await socket.open("/deltas?since=0", [Self.bearer]).hasPrefix("HTTP/1.1 101 "))
        let polled = try await live.request("GET", "/deltas?since=0", headers: [Self.bearer])
        #expect(await socket.text() == polled.body)

        await socket.say(#"{"id": "a7", "sync": \#(Self.team("Bees", sequence: 2, since: 1))}"#)
        var answers: [[String: Any]] = []
        for _ in 0..<2 { answers.append(try Self.object(await socket.text())) }
        let answer = try #require(answers.first { $0["id"] as? String == "a7" })
        let verdict = try #require(answer["answer"] as? [String: Any])
        #expect(verdict["maxRevision"] as? Int == 2)
        let batch = try #require(answers.first { $0["deltas"] != nil })
        #expect(batch["from"] as? Int == 1)
        #expect(batch["nextVersion"] as? Int == 2)
        // Sent again it is the same set.
        await socket.say(#"{"id": 8, "sync": \#(Self.team("Bees", sequence: 2, since: 2))}"#)
        let again = try Self.object(await socket.text())
        #expect(again["id"] as? Int == 8)
        #expect((again["answer"] as? [String: Any])?["maxRevision"] as? Int == 2)
        await socket.close(.normal)
        #expect(await socket.closeCode() == .normal)
        try await live.untilMetrics(
            #"martlet_websocket_messages_total{direction="in"} 2"#,
            #"martlet_requests_total{endpoint="/deltas#sync",status="200",kind="ok"} 2"#)
        await live.stop()
    }

    @Test("the token may come as first message, and must come in time")
    func firstMessage() async throws {
        let live = try await LiveServer()
        let socket = Self.socket(live)
        #expect(await socket.open("/deltas?since=0").hasPrefix("HTTP/1.1 101 "))
        await socket.say(#"{"token": "secret"}"#)
        _ = try await live.sync(Self.team("Cats", sequence: 1))
        #expect(await socket.text()?.contains("Cats") == true)
        await socket.close(.normal)

        for first in [#"{"token": "wrong"}"#, #"{"token": 7}"#, "secret", #"{"sync": {}}"#] {
            let other = Self.socket(live)
            _ = await other.open("/deltas?since=0")
            await other.say(first)
            #expect(await other.closeCode() == DeltaSocket.unauthorized, "\(first)")
        }
        let long = Self.socket(live)
        _ = await long.open("/deltas?since=0")
        await long.say(#"{"token": "\#(String(repeating: "x", count: 10_000))"}"#)
        #expect(await long.closeCode() == .tooBig)
        await live.stop()

        let impatient = try await LiveServer { $0.tokenDeadline = .milliseconds(200) }
        let silent = Self.socket(impatient)
        _ = await silent.open("/deltas?since=0")
        #expect(await silent.closeCode() == DeltaSocket.unauthorized)
        await impatient.stop()
    }

    @Test("only pages of the own host or of a named origin may connect")
    func origins() async throws {
        let live = try await LiveServer { $0.allowedOrigins = ["https://app.example.org"] }
        for (origins, isAllowed) in [
            ([], true), (["http://localhost"], true), (["https://localhost"], true),
            (["https://app.example.org"], true), (["https://APP.example.org"], true),
            (["http://app.example.org"], false), (["https://app.example.org.evil"], false),
            (["http://localhost:81"], false), (["null"], false), ([""], false),
            (["http://localhost", "http://evil.example"], false), (["file://localhost"], false),
        ] {
            let head = await Self.socket(live).open(
                "/deltas?since=0", [Self.bearer] + origins.map { "Origin: \($0)" })
            #expect(head.hasPrefix(isAllowed ? "HTTP/1.1 101 " : "HTTP/1.1 403 "), "\(origins)")
        }
        await live.stop()
        #expect(throws: ServerFailure.self) { try OriginRule(["app.example.org/"]) }
    }

    @Test("a bad query is answered before the upgrade, or told after it")
    func badQueries() async throws {
        let live = try await LiveServer()
        for (path, status) in [
            ("/deltas", 400), ("/deltas?since=x", 400), ("/deltas?since=5", 409),
            ("/deltas?since=0&dataSet=other", 409),
        ] {
            let head = await Self.socket(live).open(path, [Self.bearer])
            #expect(head.hasPrefix("HTTP/1.1 \(status) "), "\(path)")
        }
        let wrong = await Self.socket(live).open(
            "/deltas?since=0", ["Authorization: Bearer wrong"])
        #expect(wrong.hasPrefix("HTTP/1.1 401 "))
        let version = try await live.request(
            "GET", "/deltas?since=0", headers: ["Upgrade: websocket", "Connection: upgrade"])
        #expect(version.status == 426)
        #expect(version.headers["sec-websocket-version"] == "13")
        let socket = Self.socket(live)
        _ = await socket.open("/deltas?since=5")
        await socket.say(#"{"token": "secret"}"#)
        let told = try Self.object(await socket.text())
        #expect((told["problem"] as? [String: Any])?["kind"] as? String == "revisionAhead")
        #expect(await socket.closeCode() == DeltaSocket.refused)
        await live.stop()
    }

    @Test("a message that is no request is answered with a problem, and the stream goes on")
    func badMessages() async throws {
        let live = try await LiveServer()
        let socket = Self.socket(live)
        _ = await socket.open("/deltas?since=0", [Self.bearer])
        for (message, kind, id) in [
            ("no JSON", "malformed", nil), ("{}", "malformed", nil), ("[]", "malformed", nil),
            (#"{"id": 1}"#, "malformed", 1), (#"{"id": 2, "sync": []}"#, "malformed", 2),
            (#"{"id": [], "sync": {}}"#, "malformed", nil),
            (
                #"{"id": 3, "sync": {"maxRevision": 9, "changeSets": []}}"#, "revisionAhead", 3
            ),
            (
                #"{"id": 4, "sync": {"maxRevision": 0, "protocol": 99, "changeSets": []}}"#,
                "versionUnsupported", 4
            ),
        ] as [(String, String, Int?)] {
            await socket.say(message)
            let told = try Self.object(await socket.text())
            #expect((told["problem"] as? [String: Any])?["kind"] as? String == kind, "\(message)")
            #expect(told["id"] as? Int == id)
        }
        _ = try await live.sync(Self.team("Dogs", sequence: 1))
        #expect(await socket.text()?.contains("Dogs") == true)
        await socket.send(RawFrame(opcode: 2, payload: [1]).bytes)
        #expect(await socket.closeCode() == .unsupportedData)
        await live.stop()
    }

    @Test("a listener that does not read is closed with 4008, and catches up by polling")
    func slowWebSocketListener() async throws {
        let live = try await LiveServer {
            $0.http.webSocket.stallTimeout = .milliseconds(300)
            // Who does not read answers no pings either, and would be cut for that.
            $0.http.webSocket.pingInterval = .seconds(3_600)
            // It reads again only when it is closed already.
            $0.http.webSocket.closeDeadline = .seconds(3_600)
        }
        let socket = Self.socket(live)
        _ = await socket.open("/deltas?since=0", [Self.bearer])
        let name = String(repeating: "x", count: 250_000)
        // 50 MB are more than any system keeps for a socket; most keep a tenth of it.
        for number in 1...200 where try await !Self.hasSlowListener(live) {
            _ = try await live.sync(
                Self.team("\(number)\(name)", sequence: number, since: number - 1))
        }
        try await waitUntil("the listener counts as slow") {
            try await Self.hasSlowListener(live)
        }
        var reached = 0
        var code: WebSocketCode?
        while code == nil, let event = await socket.next() {
            switch event {
            case .text(let text):
                let batch = try Self.object(String(decoding: text, as: UTF8.self))
                #expect(batch["from"] as? Int == reached)
                reached = try #require(batch["nextVersion"] as? Int)
            case .close(let sent, _): code = sent
            default: continue
            }
        }
        #expect(code == DeltaSocket.tooSlow)
        let rest = try await live.request("GET", "/deltas?since=\(reached)", headers: [Self.bearer])
        #expect(try rest.member("from") == reached)
        await live.stop()
    }

    private static func hasSlowListener(_ live: LiveServer) async throws -> Bool {
        try await live.request("GET", "/metrics").body
            .contains("martlet_websockets_ended_total{reason=\"slow\"} 1")
    }

    @Test("stop ends with 1001; a token that is revoked ends with 4001")
    func endings() async throws {
        let live = try await LiveServer()
        let store = try TokenStore(directory: live.folder.path)
        let made = try store.create(dataSet: "league", user: nil, roles: [], device: nil, now: 0)
        let revoked = Self.socket(live)
        let head = await revoked.open(
            "/deltas?since=0", ["Authorization: Bearer \(made.token)"])
        #expect(head.hasPrefix("HTTP/1.1 101 "))
        let socket = Self.socket(live)
        _ = await socket.open("/deltas?since=0", [Self.bearer])
        _ = try store.revoke(made.record.identifier, now: 1)
        // The next message is the next request.
        await revoked.say(#"{"sync": {"maxRevision": 0, "changeSets": []}}"#)
        #expect(await revoked.closeCode() == DeltaSocket.unauthorized)
        async let stopped: Void = live.stop()
        #expect(await socket.closeCode() == .goingAway)
        await stopped
    }
}
