import Martlet
import MartletDevice
import MartletModel
import Synchronization
import Testing
import Waiting

@Suite("Clients that are told at once", .timeLimit(.minutes(5)))
struct LiveClientTests {
    /// Impatient, so that what comes after a failure comes soon.
    private static func options(
        _ pull: PullPolicy
    ) -> @Sendable (inout ClientOptions) -> Void {
        { options in
            options.pull = pull
            options.node.backoff.first = 20
            options.node.backoff.longest = 200
        }
    }

    private static func add(_ name: String, _ client: MartletClient) async throws {
        try await client.write { _ = try $0.insert("teams", ["name": .text(name)]) }
    }

    private static func teams(_ client: MartletClient) async throws -> [String] {
        try await client.read { context in
            try context.rows("SELECT name FROM teams ORDER BY name").compactMap {
                guard case .text(let name)? = $0["name"] else { return nil }
                return name
            }
        }
    }

    /// A server, one who writes and exchanges when told to, and one who listens over a network that
    /// can be cut.
    private struct Pair {
        let server: LiveServer
        let proxy: Proxy
        let writer: MartletClient
        let listener: MartletClient
        /// The listener's, which can be revoked.
        let token: (text: String, identifier: String)

        /// - Parameter network: What the listener's streams meet.
        init(
            _ pull: PullPolicy, network: @Sendable (inout Proxy.Traffic.State) -> Void = { _ in }
        ) async throws {
            server = try LiveServer()
            try await server.start()
            proxy = Proxy(to: try await server.url)
            proxy.traffic.state.withLock { network(&$0) }
            try await proxy.start()
            writer = try await server.device("writer", LiveClientTests.options(.onRequest))
            token = try server.makeToken()
            listener = try await server.device(
                "listener", transport: try await proxy.transport(token: token.text),
                LiveClientTests.options(pull))
        }

        /// Has a team added, and sent.
        func add(_ name: String) async throws {
            try await LiveClientTests.add(name, writer)
            try await writer.sync()
        }

        func end() async {
            for client in [writer, listener] { await client.close() }
            await proxy.cut()
            await server.stop()
        }
    }

    private static func connection(_ client: MartletClient) async throws -> ClientConnection {
        try await client.status().connection
    }

    private static func isLive(_ client: MartletClient) async throws -> Bool {
        try await connection(client) == .live
    }

    /// Whether a client makes no exchange for a while, which is long against its periods here.
    private static func isQuiet(_ client: MartletClient) async throws -> Bool {
        let before = try await client.status().traffic.exchanges
        return try await !holds(within: .milliseconds(400)) {
            try await client.status().traffic.exchanges != before
        }
    }

    @Test("a save by one reaches the other by the stream, and comes back to neither by polling")
    func reaches() async throws {
        let server = try LiveServer()
        try await server.start()
        let a = try await server.device("a", Self.options(.live(pollingEvery: nil)))
        let b = try await server.device("b", Self.options(.live(pollingEvery: nil)))
        a.start()
        b.start()
        for client in [a, b] { #expect(try await holds { try await Self.isLive(client) }) }
        let exchanges = try await b.status().traffic.exchanges
        for number in 1...10 {
            try await Self.add("team \(number)", a)
            #expect(try await holds { try await Self.teams(b).count == number })
        }
        #expect(try await b.status().traffic.exchanges == exchanges)
        #expect(try await b.status().traffic.batches >= 1)
        #expect(try await b.status().revision == 10)
        // And the other way: what the listener writes goes out at once.
        try await Self.add("from b", b)
        #expect(try await holds { try await Self.teams(a).contains("from b") })
        for client in [a, b] { await client.close() }
        await server.stop()
    }

    @Test("a server that restarts is found again, and what was missed comes")
    func restartOfLiveServer() async throws {
        let server = try LiveServer()
        try await server.start()
        let a = try await server.device("a", Self.options(.onRequest))
        let b = try await server.device("b", Self.options(.live(pollingEvery: nil)))
        b.start()
        #expect(try await holds { try await Self.isLive(b) })
        for round in 1...2 {
            await server.stop()
            #expect(try await holds { try await Self.connection(b) == .offline })
            try await Self.add("while away \(round)", a)
            try await server.start()
            try await a.sync()
            #expect(try await holds { try await Self.isLive(b) })
            #expect(try await holds { try await Self.teams(b).count == round })
        }
        for client in [a, b] { await client.close() }
        await server.stop()
    }

    @Test("a network that is cut and comes back loses nothing, and goes on where it was")
    func cutNetwork() async throws {
        let pair = try await Pair(.live(pollingEvery: nil))
        let (proxy, listener) = (pair.proxy, pair.listener)
        listener.start()
        #expect(try await holds { try await Self.isLive(listener) })
        for round in 1...3 {
            await proxy.cut()
            #expect(try await holds { try await Self.connection(listener) == .offline })
            try await pair.add("while cut \(round)")
            try await proxy.start()
            #expect(try await holds { try await Self.teams(listener).count == round })
        }
        // By the stream alone, which was told where to go on.
        #expect(proxy.traffic.requests("/sync") == 1)
        await pair.end()
    }

    @Test(
        "a device that was away while the log was compacted exchanges once, and the stream goes on")
    func behindCompactedLog() async throws {
        let server = try LiveServer(keepRevisions: 2)
        try await server.start()
        let proxy = Proxy(to: try await server.url)
        try await proxy.start()
        let a = try await server.device("a", Self.options(.onRequest))
        let b = try await server.device(
            "b", transport: try await proxy.transport(), Self.options(.live(pollingEvery: nil)))
        b.start()
        #expect(try await holds { try await Self.isLive(b) })
        await proxy.cut()
        for number in 1...12 {
            try await Self.add("away \(number)", a)
            try await a.sync()
        }
        let emptied = "martlet_log_entries_compacted_total"
        #expect(try await holds { try await server.metric(emptied) >= 8 })
        try await proxy.start()
        #expect(try await holds { try await Self.teams(b).count == 12 })
        #expect(proxy.traffic.requests("/sync") == 2)
        #expect(try await holds { try await Self.isLive(b) })
        let streams = proxy.traffic.requests("/deltas")
        try await Self.add("streamed", a)
        try await a.sync()
        #expect(try await holds { try await Self.teams(b).count == 13 })
        #expect(proxy.traffic.requests("/sync") == 2)
        #expect(proxy.traffic.requests("/deltas") == streams)
        // The rows came with the exchange, and with nothing else.
        #expect(try await holds { try await server.metric("martlet_differences_total") == 1 })
        for client in [a, b] { await client.close() }
        await proxy.cut()
        await server.stop()
    }

    @Test("a revoked token ends the stream with an error for a person, and nothing is tried again")
    func revoked() async throws {
        let pair = try await Pair(.live(pollingEvery: .milliseconds(50)))
        let (proxy, listener) = (pair.proxy, pair.listener)
        let events = listener.events
        listener.start()
        #expect(try await holds { try await Self.isLive(listener) })
        try pair.server.revoke(pair.token)
        // The server looks again with the next thing it has to tell.
        var number = 0
        #expect(
            try await holds(within: .seconds(60)) {
                number += 1
                try await pair.add("\(number)")
                return try await Self.connection(listener) == .offline
            })
        for await case .failed(let error, let retryIn) in events where error.kind == .unauthorized {
            #expect(retryIn == nil)
            #expect(error.remedy == .signIn)
            break
        }
        let asked = proxy.traffic.requests("/deltas")
        #expect(try await Self.isQuiet(listener))
        #expect(proxy.traffic.requests("/deltas") == asked)
        #expect(await holds { proxy.traffic.open == 0 })
        await pair.end()
    }

    @Test("nothing is polled while the stream is healthy; without a stream polling goes on")
    func polling() async throws {
        let pair = try await Pair(.live(pollingEvery: .milliseconds(30))) { $0.refusal = 501 }
        let (proxy, listener) = (pair.proxy, pair.listener)
        listener.start()
        #expect(try await holds { try await Self.connection(listener) == .polling })
        try await pair.add("polled")
        #expect(try await holds { try await Self.teams(listener) == ["polled"] })
        #expect(proxy.traffic.requests("/sync") > 1)
        // Asked once: a server without a stream will not have one in a moment.
        #expect(proxy.traffic.requests("/deltas") == 1)
        // The server was updated; the app starts its client anew.
        proxy.traffic.state.withLock { $0.refusal = nil }
        await listener.stop()
        listener.start()
        #expect(try await holds { try await Self.isLive(listener) })
        #expect(try await Self.isQuiet(listener))
        try await pair.add("streamed")
        #expect(try await holds { try await Self.teams(listener).count == 2 })
        await pair.end()
    }

    @Test("what another client on the file saves is sent though nothing is polled")
    func elsewhereByClient() async throws {
        let pair = try await Pair(.live(pollingEvery: .seconds(3_600)))
        pair.listener.start()
        #expect(try await holds { try await Self.isLive(pair.listener) })
        let other = try await pair.server.device("listener", Self.options(.onRequest))
        try await Self.add("elsewhere", other)
        #expect(
            try await holds {
                try await pair.writer.sync()
                return try await Self.teams(pair.writer) == ["elsewhere"]
            })
        await other.close()
        await pair.end()
    }

    @Test("a stream that something on the way holds back does not count, and polling goes on")
    func heldBack() async throws {
        let pair = try await Pair(.live(pollingEvery: .milliseconds(30))) { $0.holdsBack = true }
        let (proxy, listener) = (pair.proxy, pair.listener)
        listener.start()
        #expect(await holds { proxy.traffic.open == 1 })
        try await pair.add("polled")
        #expect(try await holds { try await Self.teams(listener) == ["polled"] })
        #expect(try await Self.connection(listener) == .polling)
        await listener.close()
        #expect(await holds { proxy.traffic.open == 0 })
        await pair.end()
    }

    @Test("the policy can be changed while the client runs")
    func policy() async throws {
        let server = try LiveServer()
        try await server.start()
        let proxy = Proxy(to: try await server.url)
        try await proxy.start()
        let client = try await server.device(
            "a", transport: try await proxy.transport(), Self.options(.onRequest))
        client.start()
        #expect(try await holds { try await Self.connection(client) == .polling })
        #expect(try await Self.isQuiet(client))
        #expect(proxy.traffic.requests("/deltas") == 0)
        client.setPullPolicy(.live(pollingEvery: .milliseconds(20)))
        #expect(try await holds { try await Self.isLive(client) })
        #expect(try await Self.isQuiet(client))
        #expect(proxy.traffic.open == 1)
        client.setPullPolicy(.polling(every: .milliseconds(20)))
        #expect(await holds { proxy.traffic.open == 0 })
        #expect(try await Self.connection(client) == .polling)
        #expect(try await holds { try await !Self.isQuiet(client) })
        client.setPullPolicy(.onRequest)
        #expect(try await holds { try await Self.isQuiet(client) })
        client.setPullPolicy(.live(pollingEvery: nil))
        #expect(try await holds { try await Self.isLive(client) })
        await client.stop()
        #expect(await holds { proxy.traffic.open == 0 })
        #expect(try await Self.connection(client) == .offline)
        await client.close()
        await proxy.cut()
        await server.stop()
    }

    @Test("a screen that is entered asks only where what is there may be old")
    func refresh() async throws {
        let server = try LiveServer()
        try await server.start()
        let client = try await server.device("a", Self.options(.live(pollingEvery: nil)))
        try await client.refresh(ifOlderThan: .seconds(3_600))
        #expect(try await client.status().traffic.exchanges == 1)
        try await client.refresh(ifOlderThan: .seconds(3_600))
        #expect(try await client.status().traffic.exchanges == 1)
        try await client.refresh(ifOlderThan: .seconds(-1))
        #expect(try await client.status().traffic.exchanges == 2)
        client.start()
        #expect(try await holds { try await Self.isLive(client) })
        let exchanges = try await client.status().traffic.exchanges
        try await client.refresh(ifOlderThan: .seconds(-1))
        #expect(try await client.status().traffic.exchanges == exchanges)
        await client.close()
        await #expect(throws: SyncError.self) { try await client.refresh(ifOlderThan: .zero) }
        await server.stop()
    }

    @Test(
        "what somebody else writes to a live client's file is sent by it, though nothing else happens"
    )
    func externalWriteWhileLive() async throws {
        let server = try LiveServer()
        try await server.start()
        let live = try await server.device("a", Self.options(.live(pollingEvery: nil)))
        let near = try await server.device("near", Self.options(.onRequest))
        live.start()
        #expect(try await holds { try await Self.isLive(live) })
        let other = try await MartletClient.open(
            path: server.file("a"), schema: LiveServer.schema, transport: nil)
        try await Self.add("from elsewhere", other)
        #expect(
            try await holds {
                try await near.sync()
                return try await Self.teams(near) == ["from elsewhere"]
            })
        for client in [live, other, near] { await client.close() }
        await server.stop()
    }

    @Test("connection and revision are followed from the current value on")
    func followed() async throws {
        let server = try LiveServer()
        try await server.start()
        let client = try await server.device("a", Self.options(.live(pollingEvery: nil)))
        var connection = client.connection.makeAsyncIterator()
        #expect(await connection.next() == .offline)
        var revision = client.revisions.makeAsyncIterator()
        #expect(await revision.next() == 0)
        try await Self.add("a", client)
        try await client.sync()
        #expect(await revision.next() == 1)
        var late = client.revisions.makeAsyncIterator()
        #expect(await late.next() == 1)
        client.start()
        while let seen = await connection.next(), seen != .live {}
        await server.stop()
        #expect(await connection.next() == .offline)
        await client.close()
        #expect(await connection.next() == nil)
        #expect(await revision.next() == nil)
        #expect(await client.revisions.first { _ in true } == 1)
    }

    @Test("a client that is closed, or let go of, leaves no stream open", arguments: [true, false])
    func letGo(closes: Bool) async throws {
        let server = try LiveServer()
        try await server.start()
        let proxy = Proxy(to: try await server.url)
        try await proxy.start()
        do {
            let client = try await server.device(
                "a", transport: try await proxy.transport(),
                Self.options(.live(pollingEvery: nil)))
            client.start()
            #expect(await holds { proxy.traffic.open == 1 })
            #expect(try await holds { try await Self.isLive(client) })
            if closes { await client.close() }
        }
        #expect(await holds { proxy.traffic.open == 0 })
        await proxy.cut()
        await server.stop()
    }
}
