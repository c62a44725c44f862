import CompressionKit
import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("Answers")
struct AnswerTests {
    static let schema = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"

    /// 700 sets, of two devices by turns; every seventh big.
    static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        for start in stride(from: 0, to: 700, by: 50) {
            let sets = (start..<(start + 50)).map { number in
                let name = String(repeating: "x", count: number % 7 == 0 ? 9_000 : 20)
                return SetText("i\(number)", sequence: number + 1)
                    .create("teams", "-\(number + 1)", #""name":"\#(name)""#)
            }
            _ = try server.exchange(sets, from: start % 100 == 0 ? "d1" : "d2")
        }
        return server
    }

    private func plain(_ answer: PreparedAnswer) throws -> [UInt8] {
        guard answer.isGzip else { return answer.body }
        return try Gzip.inflate(
            answer.body,
            limits: InflationLimits(bytes: 1 << 30, ratio: 10_000, ratioFloor: 1 << 20))
    }

    @Test(
        "compressed and plain answers say the same, from memory and from the log",
        arguments: StorageKind.all)
    func gzip(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        _ = try server.answer(#"{"clientId":"d3","maxRevision":700,"changeSets":[]}"#)
        // A node with hardly any memory reads everything from the log.
        let small = try server.otherNode(cacheBytes: 4_096)
        for since in [0, 257, 699] {
            for client in ["d1", "d2", "d3"] {
                let json = #"{"clientId":"\#(client)","maxRevision":\#(since),"changeSets":[]}"#
                let expected = try server.raw(json)
                #expect(!expected.isGzip && !expected.gainsByGzip)
                let answer = try SyncCoder.decodeAnswer(expected.body)
                #expect(answer.changeSets.compactMap(\.revision) == Array((Int64(since) + 1)..<701))
                for _ in 0..<2 {
                    let zipped = try server.raw(json, gzip: true)
                    // Compressed where something of it was already, else by whoever sends it.
                    if since == 0 { #expect(zipped.isGzip) }
                    if since == 699 { #expect(!zipped.isGzip) }
                    let isLong = expected.body.count >= 1_024
                    #expect((zipped.isGzip || zipped.gainsByGzip) == isLong)
                    #expect(!zipped.isGzip || !zipped.gainsByGzip)
                    #expect(try plain(zipped) == expected.body)
                    #expect(zipped.plainCount == expected.body.count)
                }
                let result = small.process([try server.admitted(json, gzip: true)], now: 1)[0]
                #expect(try plain(result.get()) == expected.body)
            }
        }
    }

    @Test("own sets come in their own form wherever they are read from", arguments: StorageKind.all)
    func authorFormat(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let request = #"{"clientId":"d2","maxRevision":40,"changeSets":[]}"#
        let answer = try server.answer(request)
        #expect(answer.changeSets.count == 660)
        for set in answer.changeSets {
            let number = try #require(set.revision)
            let isOwn = (number - 1) / 50 % 2 == 1
            #expect(set.conflict == (isOwn ? false : nil))
            #expect(set.identifier == (isOwn ? "i\(number - 1)" : nil))
            #expect(set.sequence == (isOwn ? number : nil))
            #expect(set["teams"]?.entries[0].oldID == (isOwn ? .integer(-number) : nil))
        }
    }

    @Test(
        "a long answer is cut between sets, and asking on gives the rest",
        arguments: StorageKind.all)
    func cutLongAnswer(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let name = String(repeating: "y", count: 3 << 20)
        for number in 1...5 {
            try server.send(SetText().create("teams", "-\(number)", #""name":"\#(name)""#))
        }
        var since: Int64 = 0
        var seen: [Int64] = []
        var cuts = 0
        while true {
            let answer = try server.answer(
                #"{"clientId":"d2","maxRevision":\#(since),"changeSets":[]}"#)
            seen += answer.changeSets.compactMap(\.revision)
            since = answer.maxRevision
            let hash = try server.log().hash(at: since)
            #expect(answer.lineage == hash?.text)
            guard answer.more else { break }
            cuts += 1
            // Refusals wait for the last part.
            let bad = SetText("b\(cuts)", sequence: cuts).update("teams", "99", #""revision":0"#)
            let refused = try server.answer(
                #"{"clientId":"d2","maxRevision":0,"changeSets":[\#(bad)]}"#)
            #expect(refused.more)
            #expect(!refused.changeSets.isEmpty)
            #expect(refused.changeSets.allSatisfy { $0.conflict == nil })
        }
        #expect(seen == [1, 2, 3, 4, 5])
        #expect(cuts == 2)
    }

    @Test("a set larger than an answer goes alone", arguments: StorageKind.all)
    func tooLargeForAnswer(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let name = String(repeating: "z", count: 9 << 20)
        try server.send(SetText().create("teams", "-1", #""name":"\#(name)""#))
        try server.send(SetText().create("teams", "-2"))
        let first = try server.answer(#"{"maxRevision":0,"changeSets":[]}"#)
        #expect(first.changeSets.count == 1 && first.more && first.maxRevision == 1)
    }

    @Test(
        "refusals whose truths fill an answer come in several, none lost",
        arguments: StorageKind.all)
    func manyRefusals(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let name = String(repeating: "w", count: 3 << 20)
        for number in 1...4 {
            try server.send(SetText().create("teams", "-\(number)", #""name":"\#(name)""#))
        }
        var waiting = (1...4).map {
            (number: Int) in
            SetText("r\(number)", sequence: number).update(
                "teams", "\(number)", #""revision":0,"name":"n""#)
        }
        var rounds = 0
        while !waiting.isEmpty, rounds < 9 {
            rounds += 1
            let answer = try server.exchange(waiting, from: "d2", at: 4)
            #expect(!answer.changeSets.isEmpty)
            #expect(answer.more == (answer.changeSets.count < waiting.count))
            #expect(answer.changeSets.allSatisfy { $0.reason == .stale })
            waiting.removeFirst(answer.changeSets.count)
        }
        #expect(rounds == 2)
    }
}
