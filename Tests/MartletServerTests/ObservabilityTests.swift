import Foundation
import HTTPKit
import Synchronization
import Testing

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
        #expect((object["time"] as? String)?.hasSuffix("Z") == true)
    }
}

@Suite("Metrics")
struct MetricsTests {
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
