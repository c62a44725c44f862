import Foundation
import SQLiteKit
import SocketTalk
import Testing
import Waiting

@testable import MartletServer

@Suite("Differences over HTTP")
struct DifferenceEndpointTests {
    private static let bearer = "Authorization: Bearer secret"

    private static func request(
        _ sequence: Int, since: Int = 0, acknowledged: Int? = nil, _ set: String
    ) -> String {
        """
        {"clientId": "device-1", "protocol": 1, "maxRevision": \(since),
         "acknowledged": \(acknowledged ?? sequence - 1), "changeSets": [
          {"identifier": "s\(sequence)", "sequence": \(sequence), "seen": \(since),
           "types": ["teams"], "teams": \(set)}]}
        """
    }

    /// Ten teams, the first deleted again: eleven revisions, of which two to four are kept whole.
    private static func fill(_ live: LiveServer) async throws {
        for number in 1...10 {
            _ = try await live.sync(
                request(
                    number, since: number - 1,
                    """
                    {"create": [-\(number)], "update": [], "delete": [],
                     "attributes": {"-\(number)": {"name": "Team \(number)", "founded": 1900}}}
                    """))
        }
        _ = try await live.sync(
            request(
                11, since: 10, #"{"create": [], "update": [], "delete": [1], "attributes": {}}"#))
        try await compacted(live)
    }

    /// Waits until the server has emptied something and has nothing more to empty.
    private static func compacted(_ live: LiveServer) async throws {
        try await waitUntil("the log is compacted") {
            let metrics = try await live.request("GET", "/metrics").body
            let count = metrics.split(separator: "\n").first {
                $0.hasPrefix("martlet_log_entries_compacted_total ")
            }
            return (count.flatMap { Int($0.split(separator: " ")[1]) } ?? 0) >= 8
        }
    }

    private static func names(_ batch: LiveServer.Answer) throws -> [String] {
        let deltas = try #require(try batch.member("deltas") as [[String: Any]]?)
        return deltas.map { delta in
            let name = (delta["p"] as? String)?.split(separator: "\"").dropFirst(2).first
            return "\(delta["v"] ?? "")\(delta["op"] ?? "") \(delta["eid"] ?? "") \(name ?? "")"
        }
    }

    @Test("who is behind the log gets rows by sync and by poll, before and after a restart")
    func poll() async throws {
        let folder = TemporaryFolder()
        var live = try await LiveServer(folder: folder) { $0.keepRevisions = 2 }
        try await Self.fill(live)
        for _ in 0..<2 {
            let poll = try await live.request("GET", "/deltas?since=7", headers: [Self.bearer])
            #expect(try poll.member("difference") == true)
            #expect(try poll.member("from") == 7)
            #expect(try poll.member("nextVersion") == 11)
            #expect(try poll.member("more") as Bool? == nil)
            let deltas = try #require(try poll.member("deltas") as [[String: Any]]?)
            #expect(deltas.map { $0["v"] as? Int } == [8, 9, 10, 11])
            #expect(deltas.map { $0["op"] as? String } == ["upsert", "upsert", "upsert", "delete"])
            #expect(deltas.map { $0["new"] as? Bool } == [true, true, true, nil])
            #expect(deltas[0]["p"] as? String == #"{"name":"Team 8","founded":1900}"#)
            #expect(deltas[3]["eid"] as? String == "1")
            let near = try await live.request("GET", "/deltas?since=10", headers: [Self.bearer])
            #expect(try near.member("difference") as Bool? == nil)
            let asked = try await live.request(
                "GET", "/deltas?since=10&rows=1", headers: [Self.bearer])
            #expect(try asked.member("difference") == true)
            let sync = try await live.sync(#"{"maxRevision": 7, "changeSets": []}"#)
            #expect(sync.changeSets.map { $0["difference"] as? Bool } == [true])
            let teams = try #require(sync.changeSets[0]["teams"] as? [String: Any])
            #expect(teams["update"] as? [Int] == [8, 9, 10])
            #expect(teams["delete"] as? [Int] == [1])
            try await live.untilMetrics("martlet_differences_total 3")
            await live.stop()
            live = try await LiveServer(folder: folder) { $0.keepRevisions = nil }
        }
        #expect(
            try await live.request("GET", "/deltas?since=0&rows=2", headers: [Self.bearer]).status
                == 400)
        #expect(
            try await live.request(
                "GET", "/deltas?since=0&rows=1&entries=1", headers: [Self.bearer]
            ).status == 400)
        await live.stop()
    }

    @Test("who takes entries only is told by poll, by events and over WebSocket that it is behind")
    func entriesOnly() async throws {
        let live = try await LiveServer { $0.keepRevisions = 2 }
        try await Self.fill(live)
        let path = "/deltas?since=7&entries=1"
        let poll = try await live.request("GET", path + "&wait=30", headers: [Self.bearer])
        #expect(try poll.member("behind") == true)
        #expect(try poll.member("nextVersion") == 7)
        let none: [[String: Any]]? = try poll.member("deltas")
        #expect(none?.isEmpty == true)
        let near = try await live.request(
            "GET", "/deltas?since=10&entries=1", headers: [Self.bearer])
        #expect(try near.member("behind") as Bool? == nil)
        #expect(try near.member("nextVersion") == 11)

        let events = RawClient(port: live.port)
        await events.send(
            "GET \(path) HTTP/1.0\r\n\(Self.bearer)\r\nAccept: text/event-stream\r\n\r\n")
        let told = await events.read(until: "\"nextVersion\":7}\n\n")
        #expect(told.contains("\r\n\r\nretry: 2000\n\ndata: {\"from\":7,"))
        #expect(told.contains("\"behind\":true"))

        let client = RawClient(port: live.port)
        let socket = TestSocket(
            write: { await client.send($0) }, read: { await client.read(atLeast: 1) })
        #expect(await socket.open(path, [Self.bearer]).hasPrefix("HTTP/1.1 101 "))
        let message = try #require(await socket.text())
        #expect(message.contains("\"behind\":true") && message.contains("\"nextVersion\":7}"))

        // Both streams go on with what is accepted from then on.
        _ = try await live.sync(
            Self.request(
                12, since: 11,
                #"{"create": [-12], "update": [], "delete": [], "attributes": {"-12": {"name": "N"}}}"#
            ))
        let next = await events.read(until: "\"nextVersion\":12}\n\n")
        #expect(next.hasPrefix("id: 12\ndata: {\"from\":11,"))
        #expect(await socket.text()?.hasPrefix("{\"from\":11,") == true)
        let metrics = try await live.request("GET", "/metrics").body
        #expect(metrics.contains("martlet_differences_total 0\n"))
        await events.abort()
        await client.abort()
        await live.stop()
    }

    @Test("a stream that begins behind the log sends rows, then entries; its parts have no id")
    func streamBehindLog() async throws {
        let live = try await LiveServer { $0.keepRevisions = 2 }
        // Three parts: one row reaches what a batch of a stream holds, 256 KiB.
        let long = String(repeating: "z", count: 300_000)
        for number in 1...3 {
            _ = try await live.sync(
                Self.request(
                    number, since: number - 1,
                    """
                    {"create": [-\(number)], "update": [], "delete": [],
                     "attributes": {"-\(number)": {"name": "\(number)\(long)"}}}
                    """))
        }
        for number in 4...10 {
            _ = try await live.sync(
                Self.request(
                    number, since: number - 1,
                    """
                    {"create": [-\(number)], "update": [], "delete": [],
                     "attributes": {"-\(number)": {"name": "Team \(number)"}}}
                    """))
        }
        try await Self.compacted(live)
        let client = RawClient(port: live.port)
        await client.send(
            """
            GET /deltas?since=0 HTTP/1.0\r\n\(Self.bearer)\r\n\
            Accept: text/event-stream\r\n\r\n
            """)
        // The long rows apart: what was sent before them, between them and behind them.
        func short(_ bytes: [UInt8]) -> String {
            String(decoding: bytes.filter { $0 != UInt8(ascii: "z") }, as: UTF8.self)
        }
        var seen = short(await client.read(atLeast: 900_000))
        while !seen.contains("\"nextVersion\":10}") {
            let part = await client.read(atLeast: 1)
            try #require(!part.isEmpty, "the stream ended with \(seen.suffix(200))")
            seen += short(part)
        }
        #expect(seen.contains("retry: 2000\n\ndata: {\"from\":0,"))
        #expect(seen.contains("-rows\",\"more\":true,\"difference\":true"))
        #expect(seen.contains("\"nextVersion\":3}\n\nid: 10\ndata: {\"from\":3,"))
        #expect(seen.components(separatedBy: "\"difference\":true").count == 5)
        #expect(seen.components(separatedBy: "\"more\":true").count == 4)
        _ = try await live.sync(
            Self.request(
                11, since: 10,
                #"{"create": [-11], "update": [], "delete": [], "attributes": {"-11": {"name": "New"}}}"#
            ))
        seen = await client.read(until: "\"nextVersion\":11}")
        #expect(!seen.contains("\"difference\":true"))
        #expect(seen.contains("id: 11\n"))
        await client.abort()
        await live.stop()
    }

    @Test("a row that cannot be sent is left out, counted, and named once to the operator")
    func unsendableRowInDifference() async throws {
        let folder = TemporaryFolder()
        let live = try await LiveServer(folder: folder)
        for number in 1...3 {
            _ = try await live.sync(
                Self.request(
                    number, since: number - 1,
                    """
                    {"create": [-\(number)], "update": [], "delete": [],
                     "attributes": {"-\(number)": {"name": "Team \(number)"}}}
                    """))
        }
        let file = try Self.file(of: "league", in: folder)
        try Connection(path: file, mode: .readWrite).execute(
            "UPDATE teams SET name = CAST(x'ff' AS TEXT) WHERE id = 2")
        for _ in 0..<2 {
            let sync = try await live.sync(
                #"{"maxRevision": 0, "rows": true, "changeSets": []}"#)
            #expect(sync.status == 200)
            let teams = try #require(sync.changeSets[0]["teams"] as? [String: Any])
            #expect(teams["update"] as? [Int] == [1, 3])
        }
        // Twice of an answer, and once of the entry that the other program's write would make.
        try await waitUntil("it is counted") {
            try await live.request("GET", "/metrics").body
                .contains("martlet_rows_left_out_total 3\n")
        }
        let told = live.logLines.filter { $0.contains(#""event":"unsendable""#) }
        #expect(told.count == 1)
        #expect(
            told.first?.contains(
                #""dataSet":"league","type":"teams","record":"2","#
                    + #""reason":"column “name” holds text that is not UTF-8","#) == true)
        await live.stop()
    }

    private static func file(of dataSet: String, in folder: TemporaryFolder) throws -> String {
        let found = FileManager.default.enumerator(atPath: folder.path)?.compactMap {
            $0 as? String
        }.first { $0.hasSuffix(".sqlite") && $0.contains(dataSet) }
        return folder.path + "/" + (try #require(found))
    }

    @Test("the log goes on being compacted while it is written, and verdicts stay")
    func repeats() async throws {
        let live = try await LiveServer { $0.keepRevisions = 1 }
        try await Self.fill(live)
        let again = try await live.sync(
            Self.request(
                3, since: 2, acknowledged: 10,
                """
                {"create": [-3], "update": [], "delete": [],
                 "attributes": {"-3": {"name": "Team 3", "founded": 1900}}}
                """))
        let own = try #require(again.changeSets.last)
        #expect(own["identifier"] as? String == "s3")
        #expect(own["revision"] as? Int == 3)
        #expect(own["conflict"] as? Bool == false)
        #expect(try again.member("maxRevision") == 11)
        await live.stop()
    }
}
