import ConnectionKit
import RedisKit
import TestDatabases
import Testing
import Waiting

@Suite("A connection to Redis cut at every step")
struct FaultyCacheTests {
    @Test("never answers one command with another's reply", .timeLimit(.minutes(1)))
    func everyByte() async throws {
        let servers = try await DatabaseServers.shared()
        let proxy = try CuttingProxy(to: servers.redisPort)
        let address = try await TestCache.address(through: proxy)
        let work: @Sendable () throws -> [RedisValue] = {
            let connection = try RedisConnection(address, TestCache.patient)
            return try connection.pipeline([
                RedisCommand("ECHO", "one"), RedisCommand("ECHO", "two"),
            ])
                + [try connection.command("ECHO", "three")]
        }
        let whole = try await TestCache.blocking(work)
        #expect(whole.map(\.text) == ["one", "two", "three"])
        let fromServer = proxy.fromServer.count
        let fromClient = proxy.fromClient.count
        var plans = (0..<fromServer).map { CuttingProxy.Plan(fromServer: $0) }
        plans += (0..<fromClient).map { CuttingProxy.Plan(fromClient: $0) }
        for plan in plans {
            proxy.plan(plan)
            let error = await #expect(throws: RedisError.self) {
                try await TestCache.blocking(work)
            }
            #expect(error?.kind == .lost, "\(plan)")
            #expect(error?.mayPass == true)
        }
    }

    @Test("a slow answer is not waited for, and not taken for the next", .timeLimit(.minutes(1)))
    func slowRedisAnswer() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let address = try RedisAddress(servers.redisURL)
        let session = RedisSession(label: "test", patience: .seconds(60)) {
            try RedisConnection(
                address, RedisOptions(connecting: .seconds(30), answer: .milliseconds(100)))
        }
        #expect(try await Self.ask(session, "ECHO", "before").text == "before")
        try await servers.order("redis pause")
        let (error, isLost) = try await session.run { connection in
            (
                try TestCache.error { _ = try connection.command("ECHO", "late") },
                connection.isLost
            )
        }
        #expect(error.kind == .timedOut)
        #expect(isLost)
        try await servers.order("redis resume")
        #expect(try await Self.ask(session, "ECHO", "after").text == "after")
    }

    @Test("killed, started anew and flushed it costs only what it held", .timeLimit(.minutes(1)))
    func killedCache() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let address = try RedisAddress(servers.redisURL)
        let session = RedisSession(
            label: "test", backoff: Backoff(first: .milliseconds(5), limit: .milliseconds(50)),
            patience: .seconds(60)
        ) { try RedisConnection(address, TestCache.patient) }
        _ = try await session.run { try $0.command("SET", "key", "value") }
        for order in ["kill", "stop"] {
            try await servers.order("redis \(order)")
            let alone = RedisSession(label: "test", patience: .zero) {
                try RedisConnection(address, TestCache.patient)
            }
            let refused = await #expect(throws: RedisError.self) {
                try await alone.run { try $0.command("PING") }
            }
            #expect(refused?.kind == .unreachable)
            // Work that comes meanwhile waits for the server.
            async let waiting = Self.ask(session, "GET", "key")
            try await servers.order("redis start")
            #expect(try await waiting == .null)
            _ = try await session.run { try $0.command("SET", "key", "value") }
        }
        _ = try await session.run { try $0.command("FLUSHALL") }
        #expect(try await session.run { try $0.command("GET", "key") } == .null)
    }

    /// What a cache is asked for can be asked again.
    private static func ask(_ session: RedisSession, _ words: String...) async throws -> RedisValue
    {
        let command = RedisCommand(words.map { [UInt8]($0.utf8) })
        while true {
            do {
                return try await session.run { try $0.command(command) }
            } catch let error as RedisError where error.endsConnection && error.mayPass {
                continue
            }
        }
    }

    @Test("a cancelled task does not wait for its answer", .timeLimit(.minutes(1)))
    func cancellation() async throws {
        let key = TestCache.key("cancelled")
        let address = try await TestCache.address()
        let session = RedisSession(label: "test") {
            try RedisConnection(
                address, RedisOptions(connecting: .seconds(30), answer: nil, name: "x"))
        }
        let number = try await session.run { try $0.command("CLIENT", "ID") }
        let task = Task { try await session.run { try $0.command("BLPOP", key, "0") } }
        try await waitUntil("the command waits") {
            try await TestCache.connected { connection in
                guard case .integer(let id) = number else { return true }
                let list = try connection.command("CLIENT", "LIST", "ID", "\(id)").text ?? ""
                return list.contains("cmd=blpop")
            }
        }
        task.cancel()
        let error = await #expect(throws: RedisError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
        #expect(try await session.run { try $0.command("PING") } == .status("PONG"))
    }
}

@Suite("Publish and subscribe")
struct MessageTests {
    @Test("messages come in order, on the channels asked for", .timeLimit(.minutes(1)))
    func orderOfMessages() async throws {
        let channels = [TestCache.key("a"), TestCache.key("b")]
        let address = try await TestCache.address()
        let heard = try await TestCache.connected { listener in
            let speaker = try RedisConnection(address, TestCache.patient)
            try listener.subscribe(channels)
            #expect(try TestCache.error { _ = try listener.command("PING") }.kind == .misuse)
            #expect(try listener.messages(within: .milliseconds(10)).isEmpty)
            for (index, channel) in (channels + ["other"] + channels).enumerated() {
                _ = try speaker.command("PUBLISH", channel, "\(index)")
            }
            var heard: [String] = []
            while heard.count < 4 {
                heard += try listener.messages(within: nil).map {
                    "\($0.channel) \(String(decoding: $0.payload, as: UTF8.self))"
                }
            }
            return heard
        }
        #expect(
            heard == [
                "\(channels[0]) 0", "\(channels[1]) 1", "\(channels[0]) 3", "\(channels[1]) 4",
            ])
    }

    @Test("are heard again after the server was killed", .timeLimit(.minutes(1)))
    func killedServerAndMessages() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let address = try RedisAddress(servers.redisURL)
        let publish: @Sendable (String) async throws -> Void = { text in
            try await TestCache.blocking {
                _ = try RedisConnection(address, TestCache.patient)
                    .command("PUBLISH", "news", text)
            }
        }
        var events: [String] = []
        for await event in RedisConnection.messages(
            address, channels: ["news"], options: TestCache.patient)
        {
            switch event {
            case .listening:
                events.append("listening")
                try await publish(events.count == 1 ? "one" : "two")
            case .message(let message):
                let text = String(decoding: message.payload, as: UTF8.self)
                events.append(text)
                if text == "one" {
                    try await servers.order("redis kill")
                    try await servers.order("redis start")
                }
            case .lost:
                if events.last != "lost" { events.append("lost") }
            }
            if events.last == "two" { break }
        }
        #expect(events == ["listening", "one", "lost", "listening", "two"])
    }
}
