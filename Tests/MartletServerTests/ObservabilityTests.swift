import Dispatch
import Foundation
import HTTPKit
import MartletRedis
import Synchronization
import Testing
import Waiting

@testable import MartletServer

@Suite("Server log")
struct ServerLogTests {
    @Test("writes one JSON object a line, whatever a name holds")
    func lines() throws {
        let lines = Mutex<[String]>([])
        let log = ServerLog(minimum: .info) { line in lines.withLock { $0.append(line) } }
        log.log(.debug, "hidden")
        log.log(
            .warning, "request",
            [("device", .text("a\"b\\c\n\u{85}é")), ("status", .number(400))])
        let all = lines.withLock { $0 }
        #expect(all.count == 1)
        let line = try #require(all.first)
        #expect(!line.contains("\n"))
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(object["level"] as? String == "warning")
        #expect(object["event"] as? String == "request")
        #expect(object["device"] as? String == "a\"b\\c\n\u{85}é")
        #expect(object["status"] as? Int == 400)
        log.log(.error, "storage", [("reason", .text(String(repeating: "x", count: 1_500) + "do"))])
        #expect(lines.withLock { $0.last }?.contains("xdo\"") == true, "the advice is not cut off")
        log.log(.error, "storage", [("reason", .text(String(repeating: "x", count: 9_999)))])
        #expect(lines.withLock { $0.last }?.contains("x…\"") == true)
        #expect((object["time"] as? String)?.hasSuffix("Z") == true)
    }
}

@Suite("The log's output", .timeLimit(.minutes(5)))
struct LogOutputTests {
    private struct Full: Error {}

    /// A file that can be full or blocked.
    private final class Sink: Sendable {
        let text = Mutex("")
        let isFull = Mutex(false)
        let tries = Mutex(0)
        let hold: DispatchSemaphore?

        init(hold: DispatchSemaphore? = nil) {
            self.hold = hold
        }

        func write(_ bytes: [UInt8]) throws {
            tries.withLock { $0 += 1 }
            hold?.wait()
            if isFull.withLock({ $0 }) { throw Full() }
            text.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
        }
    }

    @Test("lines that cannot be written are lost, and counted with the next that can")
    func fullLogCountsLost() async throws {
        let sink = Sink()
        let output = LogOutput { try sink.write($0) }
        sink.isFull.withLock { $0 = true }
        for number in 1...3 { output.add("lost \(number)") }
        try await waitUntil("all were tried") { sink.tries.withLock { $0 } >= 3 }
        sink.isFull.withLock { $0 = false }
        output.add("here again")
        try await waitUntil("it is there") { sink.text.withLock { $0.hasSuffix("here again\n") } }
        let lines = sink.text.withLock { $0 }.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines[0].contains(#""event":"log","lost":3,"#))
    }

    @Test("lines that nobody reads take no more memory than is set")
    func unread() async throws {
        let hold = DispatchSemaphore(value: 0)
        let sink = Sink(hold: hold)
        let output = LogOutput(mostBytes: 100) { try sink.write($0) }
        output.add("first")
        try await waitUntil("the first is held up") { sink.tries.withLock { $0 } == 1 }
        for _ in 1...50 { output.add("123456789") }
        for _ in 0..<60 { hold.signal() }
        try await waitUntil("ten waited") {
            sink.text.withLock { $0.split(separator: "\n").count } >= 11
        }
        output.add("last")
        try await waitUntil("the last is there") { sink.text.withLock { $0.hasSuffix("last\n") } }
        let text = sink.text.withLock { $0 }
        #expect(text.contains(#""lost":40,"#))
        #expect(text.split(separator: "\n").count { $0 == "123456789" } == 10)
    }

    @Test("nothing happens when standard error cannot be written to")
    func device() async throws {
        let output = LogOutput(to: try #require(FileHandle(forWritingAtPath: "/dev/full")))
        output.add("line")
        try await waitUntil("it was tried") { output.lostCount == 1 }
    }
}

@Suite("Metrics")
struct MetricsTests {
    /// Returns the names of each metric's labels, with every optional part of the server present.
    private func given() -> [String: Set<String>] {
        let metrics = Metrics()
        metrics.countRequest(endpoint: "/sync", status: 200, kind: "ok", answerBytes: 10)
        metrics.countVerdicts(accepted: 0, refused: ["stale"])
        let slot = SlotStatus(isActive: true, isLost: false, retainedBytes: 1, lagBytes: 1)
        let account = StorageStatus(waiting: 0, oldestWriterSeconds: 0, slot: slot)
        let text = metrics.text(
            queueDepths: [("league", 2)], blockedWriters: [("league", 0)],
            lockedTables: [("league", 0)],
            server: HTTPServerCounters(), usage: ProcessUsage.current(),
            redis: CacheCounters.Counts(),
            following: [.init(dataSet: "league", lag: 0, account: account)])
        let histograms = text.matches(of: /# TYPE (\w+) histogram/).map { String($0.1) }
        var given: [String: Set<String>] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let sample = line.wholeMatch(of: /(\w+)(?:\{(.*)\})? \S+/) else { continue }
            let name = String(sample.1)
            let labels = (sample.2 ?? "").matches(of: /(\w+)="/).map { String($0.1) }
            let family = histograms.first { name.hasPrefix($0 + "_") }
            given[family ?? name, default: []].formUnion(family == nil ? labels : [])
        }
        return given
    }

    @Test("docs/server.md has every metric the server gives, with its labels, and no other")
    func page() throws {
        let page = try String(
            contentsOf: URL(fileURLWithPath: #filePath)
                .appendingPathComponent("../../../docs/server.md").standardized, encoding: .utf8)
        var documented: [String: Set<String>] = [:]
        for row in page.matches(of: /\| \**`((?:martlet|process)_\w+)(?:\{([\w,]+)\})?`\** \|/) {
            let labels = Set((row.2 ?? "").split(separator: ",").map(String.init))
            #expect(documented.updateValue(labels, forKey: String(row.1)) == nil, "\(row.1) twice")
        }
        let given = given()
        #expect(given.count >= 39)
        #expect(documented == given)
    }

    @Test("writes what was counted in Prometheus' text form")
    func text() {
        let metrics = Metrics()
        metrics.countRequest(endpoint: "/sync", status: 200, kind: "ok", answerBytes: 10)
        metrics.countRequest(endpoint: "/sync", status: 200, kind: "ok", answerBytes: 20)
        metrics.countRequest(endpoint: "/sync", status: 401, kind: "unauthorized", answerBytes: 5)
        metrics.countVerdicts(accepted: 3, refused: ["stale", "stale", "permission"])
        metrics.countBatch(sets: 3)
        metrics.countBatch(sets: 1_000)
        metrics.countPull(isHit: true)
        let text = metrics.text(
            queueDepths: [("league", 2)], server: HTTPServerCounters(),
            usage: ProcessUsage.current())
        for line in [
            #"martlet_requests_total{endpoint="/sync",status="200",kind="ok"} 2"#,
            #"martlet_requests_total{endpoint="/sync",status="401",kind="unauthorized"} 1"#,
            "martlet_sets_accepted_total 3", #"martlet_sets_refused_total{reason="stale"} 2"#,
            #"martlet_batch_sets_bucket{le="2"} 0"#, #"martlet_batch_sets_bucket{le="4"} 1"#,
            #"martlet_batch_sets_bucket{le="+Inf"} 2"#, "martlet_batch_sets_sum 1003",
            #"martlet_queue_depth{data_set="league"} 2"#, "martlet_answer_bytes_total 35",
            "martlet_pulls_from_memory_total 1", "martlet_connections 0",
        ] {
            #expect(text.contains(line + "\n"), "\(line)")
        }
        #expect(ProcessUsage.current().cpuSeconds > 0)
        #expect(ProcessUsage.current().residentByteCount > 1_000_000)
    }
}
