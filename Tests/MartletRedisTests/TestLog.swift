import ConnectionKit
import Foundation
import MartletServerCore
import RedisKit
import TestDatabases

@testable import MartletRedis

/// A log in memory that counts what it is asked, with a history of its own making.
final class TestLog: LogSource {
    let identity: String
    private(set) var all: [LogEntry] = []
    private(set) var readings = 0
    /// Entries up to this revision have no bodies.
    var floor: Int64 = 0

    /// - Parameters:
    ///   - salt: Makes bodies that differ from another log's.
    ///   - bodyBytes: About how long a body is.
    init(_ identity: String, entries: Int, salt: String = "", bodyBytes: Int = 120) {
        self.identity = identity
        append(entries, salt: salt, bodyBytes: bodyBytes)
    }

    func append(_ count: Int, salt: String = "", bodyBytes: Int = 120) {
        var hash = all.last?.hash ?? LineageHash(origin: identity)
        for _ in 0..<count {
            let revision = Int64(all.count + 1)
            let body = [UInt8](
                #"{"revision":\#(revision),"text":"\#(salt)\#(String(repeating: "é", count: bodyBytes / 2))"}"#
                    .utf8)
            let identifier = revision.isMultiple(of: 3) ? nil : "\(salt)-\(revision)"
            hash = hash.appending(body, identifier: identifier)
            all.append(
                LogEntry(
                    revision: revision, device: revision % 7, identifier: identifier,
                    sequence: revision.isMultiple(of: 2) ? revision - 50 : nil,
                    temporaries: revision.isMultiple(of: 5) ? "-1,,-3" : nil, body: body,
                    hash: hash, time: 1_700_000_000_000 + revision))
        }
    }

    func extent() throws(StorageFault) -> LogExtent {
        let last = all.last
        return LogExtent(
            head: LogHead(
                revision: last?.revision ?? 0, hash: last?.hash ?? LineageHash(origin: identity)),
            floor: floor)
    }

    func entries(
        from first: Int64, through last: Int64, maxBytes: Int
    ) throws(StorageFault) -> [LogEntry] {
        readings += 1
        var found: [LogEntry] = []
        var bytes = 0
        for entry in all
        where entry.revision >= first && entry.revision <= last && bytes < maxBytes {
            if entry.revision <= floor {
                found.append(emptied(entry))
                break
            }
            found.append(entry)
            bytes += entry.body.count
        }
        return found
    }

    private func emptied(_ entry: LogEntry) -> LogEntry {
        LogEntry(
            revision: entry.revision, device: entry.device, identifier: entry.identifier,
            sequence: entry.sequence, temporaries: nil, body: [], hash: entry.hash,
            time: entry.time)
    }

    func hash(at revision: Int64) throws(StorageFault) -> LineageHash? {
        if revision == 0 { return LineageHash(origin: identity) }
        return revision <= Int64(all.count) ? all[Int(revision - 1)].hash : nil
    }

    func confirmation(of device: Int64) throws(StorageFault) -> Int64? { nil }

    func entries(at revisions: [Int64]) throws(StorageFault) -> [LogEntry] {
        all.filter { revisions.contains($0.revision) }
    }

    func difference(
        _ request: DifferenceRequest, limit: () -> Int64
    ) throws(StorageFault) -> DifferencePart {
        throw StorageFault(.failed, "a log without tables")
    }

    func times(of revisions: [Int64]) throws(StorageFault) -> [Int64: Int64] { [:] }
}

/// A connection of a test's own to Redis, and the log of a data set nobody else has.
struct TestShelf {
    static let key = [UInt8](repeating: 7, count: 32)

    let dataSet: String
    let address: RedisAddress
    let counters = CacheCounters()

    init(_ address: RedisAddress) {
        dataSet = UUID().uuidString.lowercased()
        self.address = address
    }

    /// Patient with a busy machine, impatient with a server that failed.
    func link(answer: Duration = .seconds(30), rest: Duration = .milliseconds(1)) -> RedisLink {
        RedisLink(
            address, counters: counters,
            options: RedisOptions(
                connecting: answer, answer: answer, longestReply: 16 << 20),
            backoff: Backoff(first: rest, limit: rest))
    }

    /// The log as a process sees it that was just started.
    func cached(_ log: TestLog, key: [UInt8] = TestShelf.key) -> CachedLog {
        CachedLog(log, shelf: BlockShelf(dataSet: dataSet, key: key, link: link()))
    }

    func connection() throws -> RedisConnection {
        try RedisConnection(
            address, RedisOptions(connecting: .seconds(30), answer: .seconds(30)))
    }

    func name(_ first: Int64) -> String { "martlet:block:\(dataSet):\(first)" }

    /// Runs what blocks on a thread of its own, with a shelf on the shared server.
    static func blocking<Answer: Sendable>(
        _ body: @escaping @Sendable (TestShelf) throws -> Answer
    ) async throws -> Answer {
        let address = try RedisAddress(try await DatabaseServers.shared().redisURL)
        return try await blocking { try body(TestShelf(address)) }
    }

    static func blocking<Answer: Sendable>(
        _ body: @escaping @Sendable () throws -> Answer
    ) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}
