import Foundation
import MartletModel
import MartletProtocol
import MartletTesting
import Testing
import Waiting

@Suite("A mock server")
struct MockServerTests {
    private static let schema = """
        "schema": ["CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);",
          "CREATE TABLE players (id INTEGER PRIMARY KEY, team INTEGER REFERENCES teams(id));"]
        """

    private func script(_ steps: String) -> String { "{\(Self.schema), \"steps\": [\(steps)]}" }

    private static func request(_ since: Int, _ sets: String = "") -> String {
        #"{"clientId": "a", "maxRevision": \#(since), "changeSets": [\#(sets)]}"#
    }

    private static let team = """
        {"identifier": "one", "sequence": 1, "types": ["teams", "players"],
         "teams": {"create": [-1], "update": [], "delete": [], "attributes": {"-1": {"name": "A"}}},
         "players": {"create": [-1], "update": [], "delete": [],
                     "attributes": {"-1": {"team": -1}}}}
        """

    private static func answer(_ text: String) throws -> SyncAnswer {
        try SyncCoder.decodeAnswer([UInt8](text.httpBody.utf8))
    }

    @Test("without a step it accepts what comes once, with permanent ids, and tells everyone")
    func honest() async throws {
        try await playing("{\(Self.schema), \"dataSet\": \"d\"}") { _, port in
            let body = Self.request(0, Self.team)
            let first = try Self.answer(
                await MockConnection.exchange(port, "POST /sync", body: body))
            #expect(first.maxRevision == 1)
            #expect(first.dataSet == "d")
            let set = try #require(first.changeSets.first)
            #expect(set.identifier == "one" && set.conflict == false)
            #expect(set.types[1].entries[0].attributes["team"] == .integer(1))
            #expect(set.types[0].entries[0].oldID == .integer(-1))
            let again = try Self.answer(
                await MockConnection.exchange(port, "POST /sync", body: body))
            #expect(again == first)
            let poll = await MockConnection.exchange(port, "GET /deltas?since=0&client=b")
            let batch = try SyncCoder.decodeDeltaBatch([UInt8](poll.httpBody.utf8))
            #expect(batch.deltas.map(\.identifier) == [nil, nil])
            #expect(batch.deltas.map(\.isNew) == [true, true])
            let own = await MockConnection.exchange(port, "GET /deltas?since=0&client=a")
            #expect(own.httpBody.contains(#""set":"one","old":-1"#))
            let schema = await MockConnection.exchange(port, "GET /schema")
            #expect(schema.httpBody.contains(#""ddl":"CREATE TABLE teams"#))
        }
    }

    @Test("what the script sent counts as the log's past, and its ids stay free")
    func continued() async throws {
        let steps = #"{"on": "sync", "then": {"generate": {"type": "teams", "count": 5}}}"#
        try await playing(script(steps)) { _, port in
            let sent = await MockConnection.exchange(
                port, "POST /sync", body: Self.request(0))
            let first = try SyncCoder.decodeAnswer([UInt8](Self.unchunked(sent).utf8))
            #expect(first.maxRevision == 5)
            #expect(first.changeSets.map(\.revision) == [1, 2, 3, 4, 5])
            #expect(first.changeSets[4].types[0].entries[0].attributes["name"] == .text("teams 5"))
            let next = try Self.answer(
                await MockConnection.exchange(port, "POST /sync", body: Self.request(5, Self.team)))
            #expect(next.maxRevision == 6)
            #expect(next.changeSets[0].types[0].create == [.integer(6)])
        }
    }

    @Test("rows are asked for: it answers a difference of what its log folds to")
    func rowsOfMockServer() async throws {
        let log = """
            "log": [{"types": ["teams"], "teams": {"create": [1, 2], "update": [], "delete": [],
                "attributes": {"1": {"name": "A"}, "2": {"name": "B"}}}},
              {"types": ["teams"], "teams": {"create": [], "update": [1], "delete": [2],
                "attributes": {"1": {"name": "C"}}}}]
            """
        try await playing("{\(Self.schema), \(log)}") { _, port in
            let poll = await MockConnection.exchange(port, "GET /deltas?since=0&rows=1")
            let batch = try SyncCoder.decodeDeltaBatch([UInt8](poll.httpBody.utf8))
            #expect(batch.isDifference && batch.nextVersion == 2)
            #expect(batch.deltas.map(\.id) == ["1", "2"])
            #expect(batch.deltas.map(\.operation) == [.upsert, .delete])
            #expect(batch.deltas[0].payload == #"{"name":"C"}"# && batch.deltas[0].isNew)
        }
    }

    @Test("a stream's parts come in the script's order, then what the log gets")
    func streamOfScript() async throws {
        let steps = """
            {"on": "stream", "expect": {"since": 0}, "then": {"parts": [
              {"batch": {"from": 1, "deltas": [{"v": 2, "e": "teams", "eid": "2", "op": "upsert",
                                                "p": {"name": "B"}}], "nextVersion": 2}},
              {"text": "id: 9\\ndata: {\\n\\n", "repeat": 2}]}}
            """
        try await playing(script(steps)) { server, port in
            async let text = MockConnection.exchange(
                port, "GET /deltas?since=0", headers: ["Accept: text/event-stream"],
                until: "\"nextVersion\":3")
            try await waitUntil("the stream was asked for") { !server.requests.isEmpty }
            _ = await MockConnection.exchange(
                port, "POST /sync", body: Self.request(2, Self.team))
            let stream = await text
            let events = stream.split(separator: "id: ").dropFirst().map {
                String($0.prefix { $0 != "\n" })
            }
            #expect(events == ["2", "9", "9", "3"])
            // Team 2 is the script's.
            #expect(stream.contains(#""v":3,"t":1763717564,"e":"teams","eid":"3""#))
            #expect(
                stream.contains(
                    #"data: {"from":1,"deltas":[{"v":2,"e":"teams","eid":"2","op":"upsert","#
                        + #""p":"{\"name\":\"B\"}","t":1763717564}],"nextVersion":2}"#))
            #expect(server.verdict.isGood)
        }
    }

    @Test("a cut breaks the connection at that byte; a body that is truncated ends in good order")
    func cutsOfMockAnswers() async throws {
        let steps = """
            {"on": "poll", "then": {"text": "0123456789", "cut": 4}},
            {"on": "poll", "then": {"text": "0123456789", "truncate": 4}},
            {"on": "poll", "then": {"text": "0123456789", "hangUp": true}},
            {"on": "sync", "then": {"log": true, "cut": 3}},
            {"on": "poll", "then": {"text": "0123456789", "drip": {"bytes": 4, "pause": 1}}}
            """
        try await playing(script(steps)) { _, port in
            let cut = await MockConnection.exchange(port, "GET /deltas?since=0")
            #expect(cut.httpBody == "4\r\n0123\r\n")
            let truncated = await MockConnection.exchange(port, "GET /deltas?since=0")
            #expect(truncated.httpBody == "4\r\n0123\r\n0\r\n\r\n")
            #expect(await MockConnection.exchange(port, "GET /deltas?since=0") == "")
            let sync = await MockConnection.exchange(port, "POST /sync", body: Self.request(0))
            #expect(sync.httpBody == "3\r\n{\"m\r\n")
            let slow = await MockConnection.exchange(port, "GET /deltas?since=0")
            #expect(slow.httpBody == "4\r\n0123\r\n4\r\n4567\r\n2\r\n89\r\n0\r\n\r\n")
        }
    }

    @Test("problems, refusals, delays and headers come as the script has them")
    func problems() async throws {
        let steps = """
            {"on": "sync", "then": {"status": 503, "delay": 20,
              "problem": {"kind": "busy", "detail": "Wait.", "retryAfter": 7}}},
            {"on": "sync", "then": {"refuse": {"reason": "stale"}}},
            {"on": "poll", "then": {"status": 418, "headers": {"X-Tea": "green"}}},
            {"on": "poll", "then": {"answer": {"a": [1,  2]}, "gzip": true}}
            """
        try await playing(script(steps)) { _, port in
            let clock = ContinuousClock()
            let start = clock.now
            let busy = await MockConnection.exchange(port, "POST /sync", body: Self.request(0))
            #expect(clock.now - start >= .milliseconds(20))
            #expect(busy.hasPrefix("HTTP/1.1 503"))
            #expect(busy.contains("Retry-After: 7\r\n"))
            #expect(busy.httpBody.contains(#""kind":"busy","detail":"Wait.","retryAfter":7"#))
            let refused = try Self.answer(
                await MockConnection.exchange(port, "POST /sync", body: Self.request(0, Self.team)))
            #expect(refused.changeSets.map(\.reason) == [.stale])
            #expect(refused.changeSets[0].types.map(\.delete) == [[.integer(-1)], [.integer(-1)]])
            let tea = await MockConnection.exchange(port, "GET /deltas?since=0")
            #expect(tea.hasPrefix("HTTP/1.1 418"))
            #expect(tea.contains("X-Tea: green\r\n"))
            let packed = await MockConnection.exchange(port, "GET /deltas?since=0")
            #expect(packed.contains("Content-Encoding: gzip\r\n"))
            #expect(!packed.contains("[1"))
        }
    }

    @Test("generated deltas come in batches that never split a version, or all in one")
    func generated() async throws {
        let steps = """
            {"on": "poll", "then": {"generate": {"type": "teams", "count": 20000, "from": 7,
              "perVersion": 3, "attributes": {"name": "N#", "size": 4}}}},
            {"on": "stream", "then": {"parts": [{"generate": {"type": "teams", "count": 10,
              "perVersion": 4, "perBatch": 5}}, {"end": true}]}},
            {"on": "poll", "then": {"generate": {"type": "teams", "count": 10, "version": 3,
              "perVersion": 4}}}
            """
        try await playing(script(steps)) { _, port in
            let poll = await MockConnection.exchange(port, "GET /deltas?since=2")
            let batch = try SyncCoder.decodeDeltaBatch([UInt8](Self.unchunked(poll).utf8))
            #expect(batch.deltas.count == 20_000)
            #expect(batch.from == 2 && batch.nextVersion == 2 + 6_667)
            #expect(batch.deltas[19_999].id == "20006")
            #expect(batch.deltas[19_999].payload == #"{"name":"N20006","size":4}"#)
            let stream = await MockConnection.exchange(
                port, "GET /deltas?since=0", headers: ["Accept: text/event-stream"])
            let batches = try Self.unchunked(stream).components(separatedBy: "data: ").dropFirst()
                .map {
                    try SyncCoder.decodeDeltaBatch([UInt8]($0.prefix { $0 != "\n" }.utf8))
                }
            #expect(batches.map(\.deltas.count) == [8, 2])
            #expect(batches.map(\.from) == [0, 2])
            #expect(batches.map(\.nextVersion) == [2, 3])
            let rest = await MockConnection.exchange(port, "GET /deltas?since=4")
            let last = try SyncCoder.decodeDeltaBatch([UInt8](Self.unchunked(rest).utf8))
            #expect(last.deltas.map(\.id) == ["9", "10"])
            #expect(last.from == 4 && last.nextVersion == 5)
        }
    }

    /// The pieces of a chunked body, joined.
    private static func unchunked(_ answer: String) -> String {
        var rest = [UInt8](answer.httpBody.utf8)[...]
        var body: [UInt8] = []
        while let end = rest.firstIndex(of: 13) {
            guard let count = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16),
                count > 0, rest.count > end - rest.startIndex + 2 + count
            else { break }
            body += rest[(end + 2)..<(end + 2 + count)]
            rest = rest[(end + 2 + count + 2)...]
        }
        return String(decoding: body, as: UTF8.self)
    }

    @Test("a file is served whole or in ranges, as long as the tag is the same")
    func file() async throws {
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-mock-\(UUID().uuidString)")
        try Data("0123456789".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let steps = """
            {"on": "snapshot", "times": "any",
             "then": {"file": "\(file.path)", "headers": {"ETag": "\\"a\\""}}}
            """
        try await playing(script(steps)) { _, port in
            func get(_ headers: String...) async -> String {
                await MockConnection.exchange(port, "GET /snapshot/x", headers: headers)
            }
            #expect(await get().httpBody == "0123456789")
            let range = await get("Range: bytes=4-6", "If-Range: \"a\"")
            #expect(range.hasPrefix("HTTP/1.1 206"))
            #expect(range.contains("Content-Range: bytes 4-6/10\r\n"))
            #expect(range.httpBody == "456")
            #expect(await get("Range: bytes=7-").httpBody == "789")
            #expect(await get("Range: bytes=4-", "If-Range: \"b\"").httpBody == "0123456789")
            #expect(await get("Range: bytes=10-").hasPrefix("HTTP/1.1 416"))
        }
    }

    @Test("a script with a token answers nobody without it")
    func token() async throws {
        try await playing(#"{"token": "t"}"#) { server, port in
            let none = await MockConnection.exchange(port, "GET /schema")
            #expect(none.hasPrefix("HTTP/1.1 401"))
            let good = await MockConnection.exchange(
                port, "GET /schema", headers: ["Authorization: Bearer t"])
            #expect(good.hasPrefix("HTTP/1.1 200"))
            #expect(server.requests.map(\.number) == [2])
        }
    }
}
