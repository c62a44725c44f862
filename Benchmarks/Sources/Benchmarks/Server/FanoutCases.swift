import CLoad
import Foundation

/// One durable change to many listeners, and what a listener costs that only waits.
enum FanoutCases {
    /// How listeners listen.
    private enum Way: String, CaseIterable {
        case events = "server-sent events"
        case webSocket = "WebSocket"

        func request(since revision: Int64) -> String {
            let head =
                "GET /deltas?since=\(revision) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                + "Authorization: Bearer \(ServerRole.token)\r\n"
            return switch self {
            case .events: head + "Accept: text/event-stream\r\n\r\n"
            case .webSocket:
                head + "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            }
        }

        /// What the server says once a listener listens.
        var sign: String {
            switch self {
            case .events: "retry: "
            case .webSocket: "\r\n\r\n"
            }
        }
    }

    @Sendable static func run() async throws {
        for way in Way.allCases {
            try fanOut(way, listeners: 1_000, rounds: 30)
            try fanOut(way, listeners: 10_000, rounds: 5)
        }
    }

    private static func fanOut(_ way: Way, listeners: Int, rounds: Int) throws {
        let server = try BenchmarkServer()
        defer { server.stop() }
        var revision = server.head.revision
        var made: OpaquePointer?
        let resident = server.process.resident.now
        try check(
            fanout_open(
                &made, server.process.port, Int32(listeners), way.request(since: revision),
                way.sign))
        defer { fanout_close(made) }
        let perListener = Double(server.process.resident.now - resident) / Double(listeners)
        var lasts: [Double] = []
        var medians: [Double] = []
        var answers: [Double] = []
        var costs: [Double] = []
        for round in 1...rounds {
            revision += 1
            // Apart, so that each change is one by itself.
            Thread.sleep(forTimeInterval: 0.05)
            let used = server.process.seconds
            var times = fanout_times()
            try check(
                fanout_round(
                    made, post(round, revision - 1), "\"nextVersion\":\(revision)", &times))
            costs.append((server.process.seconds - used) * 1e6 / Double(listeners))
            lasts.append(times.last * 1e3)
            medians.append(times.median * 1e3)
            answers.append(times.answer * 1e3)
        }
        let name = "fanout: \(listeners) over \(way.rawValue)"
        try Measurement(
            "\(name), to the last", unit: "ms", samples: lasts,
            expected: listeners == 1_000 ? "45 ms" : nil
        ).report()
        try Measurement("\(name), to the middle one", unit: "ms", samples: medians).report()
        try Measurement("\(name), to the answer", unit: "ms", samples: answers).report()
        try Measurement("\(name), server CPU each", unit: "µs", samples: costs).report()
        try Measurement(
            "\(name), server memory each", unit: "KiB", samples: [perListener / 1_024],
            expected: "20 KiB"
        ).report()
        let after = Double(server.process.resident.now - resident) / Double(listeners)
        try Measurement(
            "\(name), server memory each at the end", unit: "KiB", samples: [after / 1_024]
        ).report()
    }

    /// A request with one change set of one player.
    private static func post(_ number: Int, _ revision: Int64) -> String {
        let set = Organisation.playerSet(device: 7, first: number, count: 1)
        let body = """
            {"clientId":"poster","protocol":1,"maxRevision":\(revision),"changeSets":[\
            {"identifier":"poster-\(number)","sequence":\(number),\(set)}]}
            """
        return "POST /sync HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            + "Authorization: Bearer \(ServerRole.token)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static func check(_ code: Int32) throws {
        guard code == 0 else {
            throw BenchmarkFailure("The listeners broke off: \(String(cString: strerror(code))).")
        }
    }
}
