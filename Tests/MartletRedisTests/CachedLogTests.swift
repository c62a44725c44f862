import CompressionKit
import ConnectionKit
import MartletServerCore
import RedisKit
import TestDatabases
import Testing

@testable import MartletRedis

@Suite("The log with blocks in Redis")
struct CachedLogTests {
    @Test("a block is read once from the log, and then from Redis alone", .timeLimit(.minutes(1)))
    func hit() async throws {
        try await TestShelf.blocking { shelf in
            let log = TestLog(shelf.dataSet, entries: 600)
            let made = try #require(try shelf.cached(log).block(from: 257, through: 512))
            #expect(log.readings == 1)
            let held = try #require(try shelf.cached(log).block(from: 257, through: 512))
            #expect(log.readings == 1)
            #expect(held.piece == made.piece)
            #expect(held.devices == Set(0...6))
            #expect((held.first, held.last) == (257, 512))
            #expect(shelf.counters.current.hits == 1)
            #expect(shelf.counters.current.misses == 1)
            #expect(shelf.counters.current.stored == 1)
        }
    }

    @Test("entries come back as they were, from anywhere in a block", .timeLimit(.minutes(1)))
    func entries() async throws {
        try await TestShelf.blocking { shelf in
            let log = TestLog(shelf.dataSet, entries: 600)
            _ = try shelf.cached(log).block(from: 257, through: 512)
            for first in [Int64(257), 258, 400, 512] {
                let held = try shelf.cached(log).entries(
                    from: first, through: 512, maxBytes: .max)
                #expect(held == Array(log.all[Int(first - 1)..<512]))
            }
            let some = try shelf.cached(log).entries(from: 300, through: 512, maxBytes: 300)
            #expect(some == Array(log.all[299..<302]))
            #expect(log.readings == 1)
            // One after another: unpacked once.
            let cached = shelf.cached(log)
            let hits = shelf.counters.current.hits
            for first in Int64(300)..<310 {
                #expect(
                    try cached.entries(from: first, through: 512, maxBytes: 1)
                        == [log.all[Int(first - 1)]])
            }
            #expect(shelf.counters.current.hits == hits + 1)
            // Of what is in no whole block, nobody asks Redis.
            let misses = shelf.counters.current.misses
            #expect(
                try cached.entries(from: 513, through: 600, maxBytes: .max)
                    == Array(log.all[512...]))
            #expect(shelf.counters.current.misses == misses)
        }
    }

    @Test("a span of large entries has several blocks", .timeLimit(.minutes(1)))
    func largeEntriesInBlocks() async throws {
        try await TestShelf.blocking { shelf in
            let log = TestLog(shelf.dataSet, entries: 256, bodyBytes: 9_000)
            var ends: [Int64] = []
            var next: Int64 = 1
            while next <= 256 {
                let made = try #require(try shelf.cached(log).block(from: next, through: 256))
                ends.append(made.last)
                next = made.last + 1
            }
            #expect(ends.count == 5)
            let readings = log.readings
            for revision in [Int64(1), 60, 256] {
                let held = try shelf.cached(log).entries(from: revision, through: 256, maxBytes: 1)
                #expect(held == [log.all[Int(revision - 1)]])
            }
            #expect(log.readings == readings)
        }
    }

    @Test("emptied entries make no block", .timeLimit(.minutes(1)))
    func compacted() async throws {
        try await TestShelf.blocking { shelf in
            let log = TestLog(shelf.dataSet, entries: 256)
            log.floor = 100
            #expect(try shelf.cached(log).block(from: 1, through: 256) == nil)
            let found = try shelf.cached(log).entries(from: 1, through: 256, maxBytes: .max)
            #expect(found.count == 1 && found[0].body.isEmpty)
            #expect(shelf.counters.current.stored == 0)
        }
    }

    @Test("another history, another data set and another key are misses", .timeLimit(.minutes(1)))
    func otherHistory() async throws {
        try await TestShelf.blocking { shelf in
            let lost = TestLog(shelf.dataSet, entries: 256, salt: "lost")
            _ = try shelf.cached(lost).block(from: 1, through: 256)
            // The database was restored: the same data set, with another history.
            let log = TestLog(shelf.dataSet, entries: 256, salt: "kept")
            let first = try #require(try shelf.cached(log).block(from: 1, through: 256))
            #expect(shelf.counters.current.rejected == 1)
            #expect(first.piece == LogCache.Block(of: log.all)?.piece)
            // It was put in place of the other.
            _ = try shelf.cached(log).block(from: 1, through: 256)
            #expect(shelf.counters.current.hits == 1)
            // A server with another key may not believe it, and neither may another data set.
            _ = try shelf.cached(log, key: [1, 2, 3]).block(from: 1, through: 256)
            #expect(shelf.counters.current.rejected == 2)
            let redis = try shelf.connection()
            let other = TestShelf(shelf.address)
            _ = try redis.command("COPY", shelf.name(1), other.name(1))
            let foreign = TestLog(other.dataSet, entries: 256, salt: "kept")
            #expect(try other.cached(foreign).block(from: 1, through: 256) != nil)
            #expect(other.counters.current.rejected == 1)
        }
    }

    @Test("the hash leads to the end, or nothing is believed", .timeLimit(.minutes(1)))
    func chain() async throws {
        try await TestShelf.blocking { shelf in
            let log = TestLog(shelf.dataSet, entries: 256)
            // Sealed by a server with the key, and wrong: the bodies are of another history.
            let wrong = TestLog(shelf.dataSet, entries: 256, salt: "wrong")
            let block = try #require(LogCache.Block(of: wrong.all))
            let before = LineageHash(origin: shelf.dataSet)
            let sealed = SealedBlock(block, entries: wrong.all, before: before)
            #expect(sealed.entries() == wrong.all)
            let mixed = SealedBlock(block, entries: log.all, before: before)
            #expect(mixed.entries() == nil)
            let bytes = try #require(mixed.bytes(of: shelf.dataSet, key: TestShelf.key))
            #expect(
                SealedBlock(bytes, of: shelf.dataSet, first: 1, key: TestShelf.key) != nil)
            #expect(
                SealedBlock(bytes, of: shelf.dataSet, first: 257, key: TestShelf.key) == nil)
        }
    }
}

@Suite("Rubbish in Redis")
struct RubbishTests {
    @Test("no byte of a block can be changed or left out", .timeLimit(.minutes(1)))
    func everyByte() throws {
        let log = TestLog("abc", entries: 40, bodyBytes: 8)
        let block = try #require(LogCache.Block(of: log.all))
        let sealed = SealedBlock(
            block, entries: log.all, before: LineageHash(origin: "abc"))
        let bytes = try #require(sealed.bytes(of: "abc", key: TestShelf.key))
        #expect(SealedBlock(bytes, of: "abc", first: 1, key: TestShelf.key)?.entries() == log.all)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(SealedBlock(changed, of: "abc", first: 1, key: TestShelf.key) == nil)
            let cut = Array(bytes[..<index])
            #expect(SealedBlock(cut, of: "abc", first: 1, key: TestShelf.key) == nil)
        }
        #expect(SealedBlock(bytes + [0], of: "abc", first: 1, key: TestShelf.key) == nil)
    }

    @Test(
        "whatever lies under the name costs a look at the log, once", .timeLimit(.minutes(1)),
        arguments: ["text", "empty", "large", "list", "bomb"])
    func rubbish(_ kind: String) async throws {
        try await TestShelf.blocking { shelf in
            let log = TestLog(shelf.dataSet, entries: 256)
            let redis = try shelf.connection()
            switch kind {
            case "list": _ = try redis.command("LPUSH", shelf.name(1), "x")
            case "empty": _ = try redis.command("SET", shelf.name(1), "")
            case "large": _ = try redis.command("SETRANGE", shelf.name(1), "50000000", "x")
            case "bomb":
                let zeros = [UInt8](repeating: 0, count: 8 << 20)
                _ = try redis.command(
                    RedisCommand(
                        ["SET", shelf.name(1)].map { [UInt8]($0.utf8) } + [Gzip.compress(zeros)]))
            default: _ = try redis.command("SET", shelf.name(1), "martlet1 and no more")
            }
            let made = try #require(try shelf.cached(log).block(from: 1, through: 256))
            #expect(made.piece == LogCache.Block(of: log.all)?.piece)
            _ = try shelf.cached(log).block(from: 1, through: 256)
            #expect(log.readings == 1)
            #expect(shelf.counters.current.hits == 1)
        }
    }
}

@Suite("Redis in trouble")
struct RedisTroubleTests {
    @Test("down, it costs one failed connection, and is found again", .timeLimit(.minutes(1)))
    func killedRedisIsFoundAgain() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let shelf = TestShelf(try RedisAddress(servers.redisURL))
        let ask: @Sendable (RedisLink) throws -> Int = { link in
            let log = TestLog(shelf.dataSet, entries: 256)
            let cached = CachedLog(
                log, shelf: BlockShelf(dataSet: shelf.dataSet, key: TestShelf.key, link: link))
            for _ in 0..<100 { _ = try cached.block(from: 1, through: 256) }
            return log.readings
        }
        #expect(try await TestShelf.blocking { try ask(shelf.link()) } == 1)
        try await servers.order("redis kill")
        let failures = shelf.counters.current.failures
        #expect(try await TestShelf.blocking { try ask(shelf.link(rest: .seconds(100))) } == 100)
        #expect(shelf.counters.current.failures == failures + 1)
        try await servers.order("redis start")
        // What it held is gone.
        #expect(try await TestShelf.blocking { try ask(shelf.link()) } == 1)
    }

    @Test("stuck, it costs one wait", .timeLimit(.minutes(1)))
    func stuck() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let shelf = TestShelf(try RedisAddress(servers.redisURL))
        let before = try await TestShelf.blocking {
            shelf.link().answers(to: [RedisCommand("PING")])
        }
        #expect(before == [.status("PONG")])
        try await servers.order("redis pause")
        let (took, readings) = try await TestShelf.blocking {
            let log = TestLog(shelf.dataSet, entries: 256)
            let link = shelf.link(answer: .milliseconds(50), rest: .seconds(100))
            let cached = CachedLog(
                log, shelf: BlockShelf(dataSet: shelf.dataSet, key: TestShelf.key, link: link))
            let start = ContinuousClock.now
            for _ in 0..<100 { _ = try cached.block(from: 1, through: 256) }
            return (ContinuousClock.now - start, log.readings)
        }
        try await servers.order("redis resume")
        #expect(readings == 100)
        // A hundred waits would take five seconds.
        #expect(took < .seconds(3))
        #expect(shelf.counters.current.failures == 1)
    }

    @Test("without room it keeps what it has, and says so", .timeLimit(.minutes(1)))
    func fullRedisKeeps() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let shelf = TestShelf(try RedisAddress(servers.redisURL))
        try await TestShelf.blocking {
            let log = TestLog(shelf.dataSet, entries: 512)
            _ = try shelf.cached(log).block(from: 1, through: 256)
            _ = try shelf.connection().command("CONFIG", "SET", "maxmemory", "1")
            _ = try shelf.cached(log).block(from: 257, through: 512)
            #expect(shelf.counters.current.stored == 1)
            #expect(shelf.counters.current.failures == 1)
            _ = try shelf.cached(log).block(from: 1, through: 256)
            #expect(shelf.counters.current.hits == 1)
        }
    }

    @Test("who follows the log is connected from the start, once", .timeLimit(.minutes(1)))
    func connection() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let shelf = TestShelf(try RedisAddress(servers.redisURL))
        try await TestShelf.blocking {
            let redis = try shelf.connection()
            let connections = { () throws -> Int in
                guard case .bytes(let list) = try redis.command("CLIENT", "LIST") else { return 0 }
                return list.split(separator: UInt8(ascii: "\n")).count
            }
            let log = TestLog(shelf.dataSet, entries: 256)
            let cached = shelf.cached(log)
            #expect(try connections() == 1)
            for _ in 0..<3 { #expect(try cached.extent() == log.extent()) }
            #expect(try connections() == 2)
            _ = try cached.block(from: 1, through: 256)
            #expect(try connections() == 2)
            #expect(shelf.counters.current.failures == 0)
        }
    }

    @Test("down at the start, it costs one try, and the log is followed", .timeLimit(.minutes(1)))
    func missingRedisAtStart() async throws {
        let servers = try await DatabaseServers.start(["--redis"])
        let shelf = TestShelf(try RedisAddress(servers.redisURL))
        try await servers.order("redis kill")
        try await TestShelf.blocking {
            let log = TestLog(shelf.dataSet, entries: 256)
            let cached = CachedLog(
                log,
                shelf: BlockShelf(
                    dataSet: shelf.dataSet, key: TestShelf.key,
                    link: shelf.link(rest: .microseconds(1))))
            for _ in 0..<100 { #expect(try cached.extent() == log.extent()) }
            #expect(shelf.counters.current.failures == 1)
            let made = try #require(try cached.block(from: 1, through: 256))
            #expect(made.last == 256)
        }
    }

    @Test("blocks go by themselves", .timeLimit(.minutes(1)))
    func expiry() async throws {
        try await TestShelf.blocking { shelf in
            let log = TestLog(shelf.dataSet, entries: 256)
            _ = try shelf.cached(log).block(from: 1, through: 256)
            let answer = try shelf.connection().command("TTL", shelf.name(1))
            #expect(((1...604_800).map { RedisValue.integer($0) }).contains(answer))
        }
    }
}
