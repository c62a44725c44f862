import Foundation
import SocketTalk
import Synchronization

/// A member who means ill, or a stranger without a token: does at random what the wire allows, and what
/// it does not.
struct HostileActor: Sendable {
    /// What is done, and how often.
    final class Book: Sendable {
        private let counts = Mutex<[String: Int]>([:])
        private let over = Mutex(false)
        private let first = Mutex(0)

        /// A list of deeds was done once.
        func finish() { first.withLock { $0 += 1 } }
        private let saved = Mutex<Int64>(0)
        func noteSave() { saved.withLock { $0 += 1 } }
        /// What the honest device has saved.
        var saves: Int64 { saved.withLock(\.self) }
        /// How many have done each deed of their lists.
        var finished: Int { first.withLock(\.self) }

        func note(_ deed: Deed) { counts.withLock { $0[deed.rawValue, default: 0] += 1 } }
        func count(_ deed: Deed) -> Int { counts.withLock { $0[deed.rawValue] ?? 0 } }
        func end() { over.withLock { $0 = true } }
        var isOver: Bool { over.withLock(\.self) }
        var story: String {
            counts.withLock(\.self).sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
                .joined(separator: ", ")
        }
    }

    enum Deed: String, CaseIterable, Sendable {
        case bodyThatNeverComes, bodyThatDrips, headThatDrips, wrongTokens, floodOfFields, polls
        case streams, sockets, brokenSockets, setsWithoutEnd, inventedDevices, legalGiant
        case manySets, uploads, checks, rows, noise, unreadGiants
        case crowdOfPolls, crowdOfWaitingSets, largeBodies

        /// Whether a stranger can do it.
        var isOfStrangers: Bool {
            [.bodyThatNeverComes, .headThatDrips, .wrongTokens, .floodOfFields, .noise].contains(
                self)
        }
    }

    /// A member's tokens: for the data set that everybody uses, for one that nobody writes to, and for one
    /// in which sets wait for each other.
    struct Tokens: Sendable {
        var league: String?
        var still: String?
        var pairs: String?
    }

    let port: Int
    /// Those of a member; a stranger has none.
    let tokens: Tokens
    let number: Int
    let book: Book

    /// Where it comes from: not from where honest devices come.
    private var address: String { "127.0.0.\(2 + number)" }

    /// Does each deed of a list once, and acts until the book is closed. Blocks.
    func act(seed: UInt64, first: [Deed]) {
        var chance = Chance(seed, number)
        for deed in first {
            book.note(deed)
            perform(deed, &chance)
        }
        book.finish()
        // Each has favourites, so that some worlds have much of one thing.
        let deeds = Deed.allCases.filter { tokens.league != nil || $0.isOfStrangers }
            .shuffled(using: &chance).prefix(chance.roll(1...6))
        while !book.isOver {
            let deed = chance.pick(Array(deeds))
            book.note(deed)
            perform(deed, &chance)
        }
    }

    /// Deals all deeds out: each member has some, and each stranger some of what strangers can do.
    static func dealt(_ seed: UInt64, members: Int, strangers: Int) -> [[Deed]] {
        var chance = Chance(seed, -1)
        func deal(_ deeds: [Deed], to count: Int) -> [[Deed]] {
            let mixed = deeds.shuffled(using: &chance)
            return (0..<count).map { number in
                mixed.enumerated().filter { $0.offset % count == number }.map(\.element)
            }
        }
        return deal(Deed.allCases, to: members)
            + deal(Deed.allCases.filter(\.isOfStrangers), to: strangers)
    }

    private func authorization(_ token: String?) -> String {
        token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
    }

    private var authorization: String { authorization(tokens.league) }

    private func perform(_ deed: Deed, _ chance: inout Chance) {
        switch deed {
        case .bodyThatNeverComes:
            hold(1...30, post(length: chance.pick([1, 70_000, 16 << 20])) + "{", &chance)
        case .bodyThatDrips: drip(post(length: 16 << 20), "{\"maxRevision\":0,", &chance)
        case .headThatDrips: drip("", "POST /sync HTTP/1.1\r\nHost: h\r\n\(authorization)", &chance)
        case .wrongTokens: wrongToken(&chance)
        case .floodOfFields:
            let fields = (0..<chance.roll(90...400)).map { "X-\($0): y\r\n" }.joined()
            ask("GET /healthz HTTP/1.1\r\nHost: h\r\n\(fields)\r\n")
        case .polls:
            hold(1...60, get("/deltas?since=0&wait=60&client=p\(chance.roll(0...9))"), &chance)
        case .streams:
            hold(1...60, get("/deltas?since=0&entries=1", "Accept: text/event-stream\r\n"), &chance)
        case .sockets: hold(1...30, get("/deltas?since=0", Self.upgrade), &chance)
        case .brokenSockets: breakSocket(&chance)
        case .setsWithoutEnd:
            // They depend on a set that never comes.
            sync((0..<chance.roll(1...60)).map { set($0, dependsOn: "never-\(number)") }, &chance)
        case .inventedDevices:
            for _ in 0..<20 { sync(chance.percent(50) ? [] : [set(1)], &chance) }
        case .legalGiant:
            sync([set(1, edits: chance.roll(5_000...20_000))], &chance)
        case .manySets: sync((0..<chance.roll(500...3_000)).map { set($0) }, &chance)
        case .uploads: upload(&chance)
        case .checks: check(&chance)
        case .rows: ask(post("{\"maxRevision\":0,\"rows\":true,\"changeSets\":[]}"))
        case .noise:
            let bytes = (0..<chance.roll(1...3_000)).map { _ in UInt8(chance.roll(0...255)) }
            ask(post(String(decoding: bytes, as: UTF8.self)))
        case .unreadGiants: leaveUnread(&chance)
        case .crowdOfPolls:
            let poll = get("/deltas?since=0&wait=60", token: tokens.still)
            crowd(4_500) { _ in poll }
        case .crowdOfWaitingSets:
            // More than the server has places for, each a device of its own.
            crowd(1_400) { index in
                let set = set(1, dependsOn: "never-\(index)")
                let name = "w\(number)-\(index)"
                return post(
                    "{\"clientId\":\"\(name)\",\"maxRevision\":0,\"changeSets\":[\(set)]}",
                    token: tokens.pairs)
            }
        case .largeBodies:
            // All but their last bytes, more than the server holds at a time.
            let part = String(repeating: "x", count: chance.roll(1_000_000...16_000_000))
            hold(2...40, post(length: 16 << 20) + part, &chance)
        }
    }

    /// Makes a record that is as long as an answer may be, and asks for it on many connections that read nothing.
    private func leaveUnread(_ chance: inout Chance) {
        // Few of them make as much as one answer holds.
        while book.count(.unreadGiants) <= 3 {
            book.note(.unreadGiants)
            let text = String(repeating: "giant ", count: 1_500_000)
            ask(
                post(
                    """
                    {"clientId":"\(UUID())","maxRevision":0,"changeSets":[{"identifier":"\(UUID())",\
                    "sequence":1,"seen":0,"types":["marks"],"marks":{"create":[-1],"update":[],"delete":[],\
                    "attributes":{"-1":{"writer":\(number),"number":0,"edits":0,"label":"\(text)"}}}}]}
                    """))
        }
        hold(
            60...90,
            chance.pick([
                get("/deltas?since=0"), get("/deltas?since=0", "Accept: text/event-stream\r\n"),
                get("/deltas?since=0", Self.upgrade),
                post("{\"maxRevision\":0,\"changeSets\":[]}"),
            ]), &chance)
    }

    // MARK: - Requests

    private static let upgrade = """
        Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: \(TestSocket.key)\r\n
        """

    private func get(_ target: String, _ fields: String = "", token: String? = nil) -> String {
        "GET \(target) HTTP/1.1\r\nHost: h\r\n\(authorization(token ?? tokens.league))\(fields)\r\n"
    }

    private func post(length: Int, _ query: String = "", token: String? = nil) -> String {
        "POST /sync\(query) HTTP/1.1\r\nHost: h\r\n\(authorization(token ?? tokens.league))"
            + "Content-Type: application/json\r\nContent-Length: \(length)\r\n\r\n"
    }

    private func post(_ body: String, _ query: String = "", token: String? = nil) -> String {
        post(length: body.utf8.count, query, token: token) + body
    }

    private func set(_ index: Int, dependsOn other: String? = nil, edits: Int = 1) -> String {
        let ids = (1...edits).map { "-\($0 + index * 20_000)" }
        let rows = ids.map { "\"\($0)\":{\"writer\":\(number),\"number\":\(index),\"edits\":0}" }
        let dependency = other.map { "\"dependencyIdentifier\":\"\($0)\"," } ?? ""
        return """
            {"identifier":"\(UUID())","sequence":\(index + 1),"seen":0,\(dependency)"types":["marks"],\
            "marks":{"create":[\(ids.joined(separator: ","))],"update":[],"delete":[],\
            "attributes":{\(rows.joined(separator: ","))}}}
            """
    }

    private func sync(_ sets: [String], _ chance: inout Chance) {
        let name = chance.percent(80) ? "\(UUID())" : "shared"
        ask(
            post(
                "{\"clientId\":\"\(name)\",\"maxRevision\":0,\"changeSets\":[\(sets.joined(separator: ","))]}"
            ))
    }

    // MARK: - Connections

    /// Sends a request and reads some of the answer.
    private func ask(_ request: String) {
        guard let server = RawConnection(to: port, from: address) else { return }
        defer { server.close() }
        guard server.send([UInt8](request.utf8)) else { return }
        _ = server.receive()
    }

    /// Sends the same on some connections, reads nothing, and lets go of them later.
    private func hold(_ count: ClosedRange<Int>, _ request: String, _ chance: inout Chance) {
        let servers = (0..<chance.roll(count)).compactMap { _ in
            RawConnection(to: port, from: address)
        }
        for server in servers { server.send([UInt8](request.utf8)) }
        pause(chance.roll(20...1_500))
        for server in servers { server.close() }
    }

    /// Thousands of connections from several addresses, for some seconds. A part of the descriptors is left for the
    /// rest of this process: Dispatch ends it if it cannot open a file.
    /// - Parameter request: What each asks for, by its index.
    private func crowd(_ count: Int, _ request: (Int) -> String) {
        var servers: [RawConnection] = []
        for index in 0..<count where !book.isOver {
            let own = "127.0.\(1 + number).\(1 + index / 900)"
            guard let server = RawConnection(to: port, from: own) else { break }
            servers.append(server)
            guard !server.isNearLimit else { break }
            server.send([UInt8](request(index).utf8))
        }
        for _ in 0..<50 where !book.isOver { pause(100) }
        for server in servers { server.close() }
    }

    private func drip(_ begin: String, _ text: String, _ chance: inout Chance) {
        guard let server = RawConnection(to: port, from: address) else { return }
        defer { server.close() }
        server.send([UInt8](begin.utf8))
        for byte in text.utf8 where !book.isOver {
            guard server.send([byte]) else { return }
            pause(chance.roll(1...30))
        }
    }

    private func wrongToken(_ chance: inout Chance) {
        let target = chance.pick([
            "/sync", "/deltas?since=0", "/schema", "/snapshot", "/snapshot/x",
        ])
        let method = target == "/sync" ? "POST" : "GET"
        let token = chance.pick(["", "x", String(repeating: "y", count: 9_000), "a.b.c", "é"])
        for _ in 0..<20 {
            ask(
                "\(method) \(target) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(token)\r\n"
                    + "Content-Length: 0\r\n\r\n")
        }
    }

    private func breakSocket(_ chance: inout Chance) {
        guard let server = RawConnection(to: port, from: address) else { return }
        defer { server.close() }
        server.send([UInt8](get("/deltas?since=0", Self.upgrade).utf8))
        _ = server.receive()
        let frames = [
            RawFrame(opcode: 1, claimed: 1 << 40), RawFrame(opcode: 11), RawFrame.ping("x"),
            RawFrame(isFinal: false, opcode: 1, payload: Array(repeating: 120, count: 60_000)),
            RawFrame(opcode: 1, payload: [1], mask: nil), RawFrame.text("{\"sync\":{}}"),
            RawFrame.text("{\"sync\":{\"maxRevision\":0,\"changeSets\":[]},\"id\":1}"),
        ]
        for _ in 0..<chance.roll(1...200) {
            guard server.send(chance.pick(frames).bytes) else { return }
        }
    }

    private func upload(_ chance: inout Chance) {
        let piece = String(repeating: "x", count: 200_000)
        ask(
            post(piece, "?upload=\(UUID())&from=0&total=\(chance.pick([200_001, 16 << 20]))&most=1")
        )
    }

    private func check(_ chance: inout Chance) {
        let ranges = (0..<chance.roll(1...4_096)).map { "[\($0 * 2),\($0 * 2 + 1),\"x\"]" }
        ask(
            post(
                "{\"maxRevision\":0,\"changeSets\":[],\"check\":{\"revision\":0,\"marks\":["
                    + "\(ranges.joined(separator: ","))]}}"))
    }

    private func pause(_ milliseconds: Int) {
        Thread.sleep(forTimeInterval: Double(milliseconds) / 1_000)
    }
}
