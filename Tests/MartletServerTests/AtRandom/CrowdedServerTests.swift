import Foundation
import HTTPKit
import SocketTalk
import Testing
import Waiting

@testable import MartletServer

/// A server with few places for requests, and a crowd of members. Each waits in one of the ways that the wire
/// allows, and none of them does wrong.
private final class Crowd {
    /// How a member waits for news.
    private enum Way: CaseIterable { case poll, stream, socket, idle }

    /// Somebody who waits.
    private struct Listener {
        let way: Way
        let token: String
        let client: RawClient
        let socket: TestSocket?
    }

    private static let wish = "Connection: close\r\nHost: h\r\n"

    private let live: LiveServer
    private let tokens: [String]
    private let capacity: Int
    private var chance: Chance
    private var listeners: [Listener] = []
    /// Members whose bodies are still on their way: these have places.
    private var slow: [RawClient] = []
    private var saves = 0
    private var story: [String] = []
    private(set) var faults: [String] = []

    init(_ seed: UInt64) async throws {
        var chance = Chance(seed)
        let capacity = chance.roll(3...12)
        live = try await LiveServer {
            $0.http.maxRequestsInFlight = capacity
            $0.dependencyWaitSeconds = 1
        }
        let store = try TokenStore(directory: live.folder.path)
        // One user with many devices, or as many users as there are devices.
        let users = chance.pick([1, 3, 40])
        tokens = try (0..<users).map {
            try store.create(dataSet: "league", user: "user \($0)", now: 1).token
        }
        (self.capacity, self.chance) = (capacity, chance)
        story.append("a capacity of \(capacity), \(users) users")
    }

    /// - Returns: What went wrong, with the story.
    func run(steps: Int) async throws -> [String] {
        for _ in 0..<steps where faults.isEmpty {
            switch chance.roll(0...99) {
            case 0..<45: try await wait()
            case 45..<52: try await leave()
            case 52..<62: try await send()
            case 62..<72: try await save()
            default: try await ask()
            }
        }
        if faults.isEmpty { try await save() }
        for client in slow { await client.abort() }
        await live.stop()
        return faults.isEmpty ? [] : faults + story.suffix(60)
    }

    private func authorization(_ token: String) -> String { "Authorization: Bearer \(token)\r\n" }

    // MARK: - The crowd

    /// One more member waits, and stays.
    private func wait() async throws {
        guard listeners.count < 6 * capacity else { return }
        let way = chance.pick(Way.allCases)
        let token = chance.pick(tokens)
        story.append("\(way)")
        let client = RawClient(port: live.port)
        let begin = "HTTP/1.1\r\nHost: h\r\n\(authorization(token))"
        var socket: TestSocket?
        switch way {
        case .poll:
            await client.send("GET /deltas?since=\(saves)&wait=60 \(begin)\r\n")
        case .stream:
            await client.send(
                "GET /deltas?since=\(saves) \(begin)Accept: text/event-stream\r\n\r\n")
        case .socket:
            let new = TestSocket(client)
            socket = new
            let head = await new.open("/deltas?since=\(saves)", ["Authorization: Bearer \(token)"])
            if !head.hasPrefix("HTTP/1.1 101") { faults.append("a socket got \(head.prefix(200))") }
        case .idle:
            // A connection that has asked for something, and stays open.
            await client.send("GET /schema \(begin)\r\n")
            let answer = await client.read(until: "\r\n\r\n")
            if !answer.hasPrefix("HTTP/1.1 200") { faults.append("/schema got \(answer)") }
        }
        listeners.append(Listener(way: way, token: token, client: client, socket: socket))
        if faults.isEmpty { await count(after: "a \(way) came") }
    }

    /// The server knows who waits, and nobody else.
    private func count(after deed: String) async {
        let wanted = listeners.count { $0.way != .idle }
        let isKnown = await holds {
            await live.server.waitingListeners == wanted
        }
        if !isKnown {
            let known = await live.server.waitingListeners
            faults.append("after \(deed) \(wanted) wait, and the server knows \(known)")
        }
    }

    private func leave() async throws {
        guard !listeners.isEmpty else { return }
        let one = listeners.remove(at: chance.roll(0...listeners.count - 1))
        story.append("a \(one.way) leaves")
        await one.client.abort()
        await count(after: "a \(one.way) left")
    }

    /// A body begins to arrive, or goes on to its end. Fewer than half of the places are taken so.
    private func send() async throws {
        if let client = slow.popLast(), chance.percent(50) || slow.count + 2 > capacity / 2 {
            await client.send("}")
            let answer = await client.readAll()
            story.append("a body ends")
            if !answer.hasPrefix("HTTP/1.1 200") { faults.append("a slow body got \(answer)") }
            return
        }
        guard slow.count + 1 < capacity / 2 else { return }
        let client = RawClient(port: live.port)
        let body = "{\"maxRevision\":\(saves),\"changeSets\":[]"
        story.append("a body begins")
        await client.send(
            "POST /sync HTTP/1.1\r\n\(Self.wish)\(authorization(chance.pick(tokens)))"
                + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count + 1)\r\n\r\n\(body)"
        )
        slow.append(client)
    }

    // MARK: - The one who does something

    /// Everybody who waits hears of a save.
    private func save() async throws {
        saves += 1
        let name = "team-\(saves)-"
        story.append("a save beside \(listeners.count) who wait")
        let user = chance.roll(0...tokens.count - 1)
        let answer = try await live.sync(
            """
            {"clientId":"saver \(user)","maxRevision":\(saves - 1),"changeSets":[{"identifier":"\(name)",\
            "sequence":\(saves),"seen":0,"types":["teams"],"teams":{"create":[-\(saves)],"update":[],\
            "delete":[],"attributes":{"-\(saves)":{"name":"\(name)"}}}}]}
            """, token: tokens[user])
        guard answer.status == 200, answer.body.contains("\"conflict\":false") else {
            faults.append("a save beside \(listeners.count) who wait got \(answer)")
            return
        }
        var stay: [Listener] = []
        for one in listeners {
            switch one.way {
            case .poll, .stream:
                let text = await one.client.read(until: name)
                if !text.contains(name) { faults.append("a \(one.way) heard \(text)") }
            case .socket:
                let text = await one.socket?.text() ?? ""
                if !text.contains(name) { faults.append("a socket heard \(text)") }
            case .idle: break
            }
            if one.way != .poll { stay.append(one) }
        }
        listeners = stay
        if faults.isEmpty { await count(after: "a save") }
    }

    /// A request beside those who wait.
    private func ask() async throws {
        let token = "Authorization: Bearer \(chance.pick(tokens))"
        let (method, path, body) = chance.pick([
            ("GET", "/healthz", ""), ("GET", "/schema", ""), ("GET", "/deltas?since=0", ""),
            ("POST", "/sync", "{\"maxRevision\":0,\"changeSets\":[]}"),
            ("POST", "/sync", "{\"maxRevision\":0,\"rows\":true,\"changeSets\":[]}"),
        ])
        let fields = body.isEmpty ? [token] : [token, "Content-Type: application/json"]
        let answer = try await live.request(method, path, headers: fields, body: [UInt8](body.utf8))
        story.append("\(path): \(answer.status)")
        if answer.status != 200 {
            faults.append("\(path) beside \(listeners.count) who wait got \(answer)")
        }
    }
}

@Suite("A server with few places and a crowd who waits", .timeLimit(.minutes(10)))
struct CrowdedServerTests {
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    /// MARTLET_CROWD_WORLDS=20 tries so many times as many worlds; MARTLET_CROWD_SEED=146 runs one again.
    private static let seeds: [UInt64] = {
        if let seed = number("MARTLET_CROWD_SEED") { return [seed] }
        return (0..<6 * (number("MARTLET_CROWD_WORLDS") ?? 1)).map { _ in
            UInt64.random(in: 0 ... .max)
        }
    }()

    @Test("who waits takes no place, and hears of each save", arguments: seeds)
    func worldOfCrowdedServer(seed: UInt64) async throws {
        let story = try await Crowd(seed).run(steps: 60)
        #expect(story.isEmpty, "seed \(seed): \(story.joined(separator: "\n"))")
    }
}
