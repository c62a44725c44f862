import ConnectionKit
import RedisKit
import TestDatabases
import Testing

@Suite("Commands")
struct CommandTests {
    @Test("carry any bytes there and back")
    func bytesOfAnyValue() async throws {
        let key = TestCache.key("bytes")
        let same = try await TestCache.connected { connection in
            for bytes in [
                [], [0], Array(0...255), Array("\r\n$-1\r\n".utf8),
                Array(repeating: 7, count: 1 << 20),
            ] {
                let set = RedisCommand([Array("SET".utf8), Array(key.utf8), bytes])
                guard try connection.command(set) == .status("OK"),
                    try connection.command("GET", key) == .bytes(bytes)
                else { return false }
            }
            _ = try connection.command("DEL", key)
            return try connection.command("GET", key) == .null
        }
        #expect(same)
    }

    @Test("every kind of answer")
    func kinds() async throws {
        let key = TestCache.key("list")
        let answers = try await TestCache.connected { connection in
            [
                try connection.command("PING"), try connection.command("RPUSH", key, "a", "b"),
                try connection.command("LRANGE", key, "0", "-1"),
                try connection.command("EVAL", "return {1, {'x', false}, {}}", "0"),
                try connection.command("DEL", key),
            ]
        }
        #expect(
            answers == [
                .status("PONG"), .integer(2), .array([.bytes([97]), .bytes([98])]),
                .array([.integer(1), .array([.bytes([120]), .null]), .array([])]), .integer(1),
            ])
    }

    @Test("a pipeline answers in order; what is refused does not stop the others")
    func pipeline() async throws {
        let key = TestCache.key("pipeline")
        let answers = try await TestCache.connected { connection in
            let answers = try connection.pipeline([
                RedisCommand("SET", key, "x"), RedisCommand("INCR", key), RedisCommand("NONSENSE"),
                RedisCommand("GET", key), RedisCommand("DEL", key),
            ])
            #expect(try connection.pipeline([]).isEmpty)
            return answers
        }
        #expect(answers[0] == .status("OK"))
        #expect(answers[3] == .bytes([120]))
        for answer in answers[1...2] {
            guard case .error(let error) = answer else {
                Issue.record("\(answer) is no error")
                continue
            }
            #expect(error.kind == .refused && !error.endsConnection)
        }
        let refused = try await TestCache.connected { connection in
            let error = try TestCache.error { _ = try connection.command("NONSENSE") }
            #expect(try connection.command("PING") == .status("PONG"))
            return error
        }
        #expect(refused.kind == .refused)
    }

    @Test("a long pipeline with long answers does not block itself", .timeLimit(.minutes(1)))
    func longPipeline() async throws {
        let count = try await TestCache.connected { connection in
            let text = String(repeating: "x", count: 50_000)
            let commands = (0..<300).map { _ in RedisCommand("ECHO", text) }
            return try connection.pipeline(commands).filter { $0.text == text }.count
        }
        #expect(count == 300)
    }

    @Test("a reply that is longer than allowed ends the connection")
    func longReply() async throws {
        let address = try await TestCache.address()
        let error = try await TestCache.blocking {
            var options = TestCache.patient
            options.longestReply = 100_000
            let connection = try RedisConnection(address, options)
            let error = try TestCache.error {
                _ = try connection.command("EVAL", "return string.rep('x', 1000000)", "0")
            }
            #expect(connection.isLost && !connection.isUsable())
            return error
        }
        #expect(error.kind == .garbled && error.endsConnection)
    }
}

@Suite("Connecting to Redis")
struct ConnectingTests {
    @Test("says what is wrong: password, number, host, port, or no Redis at all")
    func refusalsOfRedisLogin() async throws {
        let servers = try await DatabaseServers.shared()
        let port = servers.redisPort
        let urls = [
            "redis://nobody:wrong@127.0.0.1:\(port)", "redis://127.0.0.1:\(port)/99",
            "redis://host.invalid", "redis://127.0.0.1:1",
        ]
        let kinds = try await TestCache.blocking {
            try urls.map { url in
                try TestCache.error {
                    _ = try RedisConnection(try RedisAddress(url), TestCache.patient)
                }.kind
            }
        }
        #expect(kinds == [.unauthorized, .refused, .unreachable, .unreachable])
        let postgres = servers.postgresPort
        let notRedis = try await TestCache.blocking {
            try TestCache.error {
                _ = try RedisConnection(
                    try RedisAddress("redis://127.0.0.1:\(postgres)"), TestCache.patient)
            }
        }
        #expect([.garbled, .lost].contains(notRedis.kind))
    }

    @Test("users have passwords and rights of their own")
    func users() async throws {
        let user = TestCache.key("ann").replacing(":", with: "")
        let port = try await DatabaseServers.shared().redisPort
        try await TestCache.connected { connection in
            _ = try connection.command(
                "ACL", "SETUSER", user, "on", ">pass word", "~none:*", "+@all")
        }
        let forbidden = try await TestCache.blocking {
            let connection = try RedisConnection(
                try RedisAddress("redis://\(user):pass%20word@127.0.0.1:\(port)"),
                TestCache.patient)
            #expect(try connection.command("ACL", "WHOAMI").text == user)
            return try TestCache.error { _ = try connection.command("GET", "other") }
        }
        #expect(forbidden.kind == .unauthorized)
        try await TestCache.connected { _ = try $0.command("ACL", "DELUSER", user) }
    }

    @Test("a server that says nothing is given up")
    func silenceWhileConnectingToRedis() async throws {
        let proxy = try CuttingProxy(
            to: try await DatabaseServers.shared().redisPort, .init(fromServer: 0, isSilent: true))
        let address = try await TestCache.address(through: proxy)
        let error = try await TestCache.blocking {
            try TestCache.error {
                _ = try RedisConnection(address, RedisOptions(connecting: .milliseconds(100)))
            }
        }
        #expect(error.kind == .timedOut && error.mayPass)
    }

    @Test("codes of the server say what to do")
    func codes() async throws {
        // What a script returns as an error is a reply like any other.
        let kinds = try await TestCache.connected { connection in
            try ["LOADING data", "READONLY replica", "OOM memory", "NOPERM no", "WHAT"].map {
                code in
                try TestCache.error {
                    _ = try connection.command("EVAL", "return redis.error_reply('\(code)')", "0")
                }.kind
            }
        }
        #expect(kinds == [.restarting, .readOnly, .full, .unauthorized, .refused])
        for kind in RedisError.Kind.allCases { #expect(!RedisError(kind, "").remedy.isEmpty) }
    }
}
