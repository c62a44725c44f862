import Foundation
import MartletModel
import Synchronization
import Testing
import Waiting

@testable import Martlet
@testable import MartletDevice

@Suite("Tokens that end", .timeLimit(.minutes(5)))
struct TokenTests {
    private static func options(_ provider: TokenProvider? = nil) -> ClientOptions {
        var options = ClientOptions()
        options.pull = .live(pollingEvery: nil)
        options.node.backoff.first = 10
        options.node.backoff.longest = 100
        options.tokenProvider = provider
        return options
    }

    private static func open(
        _ server: LiveServer, _ token: String?, _ provider: TokenProvider? = nil
    ) async throws -> MartletClient {
        try await MartletClient.open(
            path: server.file("b"), schema: LiveServer.schema, server: try await server.url,
            token: token, options: options(provider))
    }

    private static func isLive(_ client: MartletClient) async throws -> Bool {
        try await client.status().connection == .live
    }

    private static func save(_ name: String, _ client: MartletClient) async throws {
        try await client.write { try $0.insert("teams", ["name": .text(name)]) }
        try await client.sync()
    }

    private static func teams(_ client: MartletClient) async throws -> Int {
        try await client.read { try $0.rows("SELECT id FROM teams").count }
    }

    @Test("the app is asked for the next one, and nothing stops: neither exchanges nor the stream")
    func provided() async throws {
        let server = try LiveServer()
        try await server.start()
        let other = try await server.device("a") { $0.pull = .onRequest }
        let tokens = try (1...3).map { _ in try server.makeToken(user: "ada") }
        let asked = Mutex<[String?]>([])
        let client = try await Self.open(server, nil) { refused in
            let next = asked.withLock { asked in
                asked.append(refused)
                return asked.count - 1
            }
            return next < tokens.count ? tokens[next].text : nil
        }
        let events = client.events
        client.start()
        #expect(try await holds { try await Self.isLive(client) })
        #expect(asked.withLock(\.self) == [nil])
        // An exchange meets the end of the first, the stream that of the second.
        try server.revoke(tokens[0])
        try await Self.save("mine", client)
        #expect(asked.withLock(\.self) == [nil, tokens[0].text])
        #expect(try await Self.teams(client) == 1)
        #expect(try await holds { try await Self.isLive(client) })
        try server.revoke(tokens[1])
        var number = 0
        #expect(
            try await holds {
                number += 1
                try await Self.save("theirs \(number)", other)
                return asked.withLock(\.count) == 3
            })
        #expect(try await holds { try await Self.isLive(client) })
        #expect(try await holds { try await Self.teams(client) == 1 + number })
        await client.close()
        for await event in events {
            if case .failed(let error, _) = event { #expect(error.kind != .unauthorized) }
        }
        #expect(asked.withLock(\.self) == [nil, tokens[0].text, tokens[1].text])
        await other.close()
        await server.stop()
    }

    @Test("a client that was stopped by a refused one goes on with the next, by itself")
    func given() async throws {
        let server = try LiveServer()
        try await server.start()
        let client = try await Self.open(server, "expired")
        var events = client.events.makeAsyncIterator()
        try await client.write { try $0.insert("teams", ["name": "mine"]) }
        client.start()
        var error: SyncError?
        while error == nil, let event = await events.next() {
            if case .failed(let failure, let retryIn) = event, retryIn == nil { error = failure }
        }
        #expect(error?.kind == .unauthorized && error?.remedy == .signIn)
        #expect(try await client.status().outbox == 1)
        await client.setToken(LiveServer.token)
        #expect(try await holds { try await client.status().outbox == 0 })
        #expect(try await holds { try await Self.isLive(client) })
        await client.close()
        await server.stop()
    }

    @Test("an app that has none now stops the client; one that cannot say is asked again")
    func without() async throws {
        let server = try LiveServer()
        try await server.start()
        struct Unreachable: Error {}
        let answers = Mutex(0)
        let client = try await Self.open(server, "expired") { refused in
            guard refused == "expired" else { return refused }
            let number = answers.withLock { count in
                count += 1
                return count
            }
            if number == 1 { throw Unreachable() }
            return number == 2 ? nil : LiveServer.token
        }
        let first = await #expect(throws: SyncError.self) { try await client.sync() }
        #expect(first?.kind == .offline)
        let second = await #expect(throws: SyncError.self) { try await client.sync() }
        #expect(second?.kind == .unauthorized)
        #expect(try await client.sync() == 0)
        #expect(answers.withLock(\.self) == 3)
        await client.close()
        await server.stop()
    }
}

@Suite("The token in use")
struct TokenKeeperTests {
    @Test("one call is made for all requests that were refused")
    func onceAskedForToken() async throws {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let asked = Mutex(0)
        let keeper = TokenKeeper("a") { refused in
            asked.withLock { $0 += 1 }
            for await _ in gate { break }
            return (refused ?? "") + "b"
        }
        try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<5 { group.addTask { try await keeper.replacement(for: "a") } }
            #expect(await holds { asked.withLock { $0 == 1 } })
            open.finish()
            for try await token in group { #expect(token == "ab") }
        }
        #expect(asked.withLock(\.self) == 1)
        // A late refusal of the old one asks nobody.
        #expect(try await keeper.replacement(for: "a") == "ab")
        #expect(asked.withLock(\.self) == 1)
    }

    @Test("one that is set meanwhile counts more than a late answer")
    func overtaken() async throws {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let asked = Mutex(false)
        let keeper = TokenKeeper("a") { _ in
            asked.withLock { $0 = true }
            for await _ in gate { break }
            return "late"
        }
        let waiting = Task { try await keeper.replacement(for: "a") }
        #expect(await holds { asked.withLock(\.self) })
        await keeper.set("new")
        open.finish()
        #expect(try await waiting.value == "new")
        #expect(try await keeper.token() == "new")
    }

    @Test("without a provider there is nothing better than what was given")
    func alone() async throws {
        let keeper = TokenKeeper("a", provider: nil)
        #expect(try await keeper.token() == "a")
        #expect(try await keeper.replacement(for: "a") == nil)
        await keeper.set(nil)
        #expect(try await keeper.token() == nil)
    }
}
