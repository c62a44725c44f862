import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("Truths of refused sets")
struct TruthTests {
    private static let schema = """
        CREATE TABLE pages (id INTEGER PRIMARY KEY, number INTEGER, body TEXT);
        """

    private static func server(
        _ kind: StorageKind, pages: Int, bytes: Int
    ) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        var set = SetText()
        let body = String(repeating: "x", count: bytes)
        for number in 1...pages {
            set = set.create("pages", "-\(number)", #""body":"\#(body)""#)
        }
        try server.send(set)
        var touch = SetText()
        for number in 1...pages {
            touch = touch.update("pages", "\(number)", #""revision":1,"number":1"#)
        }
        try server.send(touch, from: "d2")
        return server
    }

    @Test(
        "are as many as an answer holds; the other verdicts come with the next one",
        arguments: StorageKind.all)
    func manyTruths(kind: StorageKind) async throws {
        let server = try await Self.server(kind, pages: 1, bytes: 1 << 20)
        var sets = (1...20).map { (number: Int) in
            SetText("s\(number)", sequence: number, seen: 1)
                .update("pages", "1", #""revision":1,"number":\#(number)"#)
        }
        var told: [String] = []
        var answers = 0
        while !sets.isEmpty {
            let answer = try server.exchange(sets, from: "d3", at: 2)
            let fates = answer.changeSets.filter { $0.conflict == true }
            #expect(fates.allSatisfy { $0.reason == .stale && !$0.isTruthCut })
            #expect(fates.allSatisfy { $0["pages"]?.entries.first?.revision == 2 })
            #expect((1...8).contains(fates.count))
            told += fates.compactMap(\.identifier)
            sets.removeFirst(fates.count)
            #expect(answer.more == !sets.isEmpty)
            answers += 1
            try #require(answers < 20)
        }
        #expect(told == (1...20).map { "s\($0)" })
    }

    @Test("read a record once for all sets that name it", arguments: StorageKind.embedded)
    func readsTruthOnce(kind: StorageKind) async throws {
        func reads(_ count: Int) async throws -> Int {
            let server = try await Self.server(kind, pages: 2, bytes: 1_000)
            let sets = (1...count).map { (number: Int) in
                SetText("s\(number)", sequence: number, seen: 1)
                    .update("pages", "1", #""revision":1,"number":\#(number)"#)
                    .update("pages", "2", #""revision":1,"number":\#(number)"#)
            }
            let answer = try server.exchange(sets, from: "d3", at: 2)
            #expect(answer.changeSets.count == count && !answer.more)
            return try #require(server.storage as? EmbeddedStore).session().truthReads
        }
        #expect(try await reads(10) == 2)
        #expect(try await reads(100) == 2)
    }

    @Test("one that is more than an answer holds says that it is cut", arguments: StorageKind.all)
    func cutTruth(kind: StorageKind) async throws {
        let server = try await Self.server(kind, pages: 100, bytes: 100_000)
        var set = SetText("s", sequence: 1, seen: 1)
        for number in 1...100 {
            set = set.update("pages", "\(number)", #""revision":1,"number":3"#)
        }
        let raw = try server.text(
            #"{"clientId":"d3","maxRevision":2,"changeSets":[\#(set)]}"#)
        #expect(raw.contains(#""part":true"#))
        let answer = try SyncCoder.decodeAnswer(Array(raw.utf8))
        #expect(!answer.more)
        let fate = try #require(answer.changeSets.last)
        #expect(fate.isTruthCut && fate.reason == .stale)
        #expect(fate.message?.hasSuffix("some are not listed") == true)
        #expect((70...99).contains(fate["pages"]?.update.count ?? 0))
        // A smaller set is whole, and says so.
        let small = try server.send(
            SetText("t", sequence: 2, seen: 1).update("pages", "1", #""revision":1,"number":3"#),
            from: "d3")
        #expect(!small.isTruthCut && small["pages"]?.update == [.integer(1)])
    }

    @Test("many verdicts beside a difference come in parts, too", arguments: StorageKind.all)
    func besideDifference(kind: StorageKind) async throws {
        let server = try await Self.server(kind, pages: 1, bytes: 1 << 20)
        let sets = (1...20).map { (number: Int) in
            SetText("s\(number)", sequence: number, seen: 1)
                .update("pages", "1", #""revision":1,"number":\#(number)"#)
        }
        let list = sets.map(\.description).joined(separator: ",")
        let answer = try server.answer(
            #"{"clientId":"d3","maxRevision":2,"rows":true,"changeSets":[\#(list)]}"#)
        #expect(answer.more)
        #expect((2...9).contains(answer.changeSets.count))
    }

    @Test("a storage tells as many as have room, and always the first", arguments: StorageKind.all)
    func roomOfTruths(kind: StorageKind) async throws {
        let server = try await Self.server(kind, pages: 5, bytes: 100_000)
        let requests = try (1...5).map { (number: Int) in
            let set = SetText("s\(number)", sequence: number, seen: 1)
                .update("pages", "\(number)", #""revision":1,"number":3"#)
            return CurrentRowsRequest(
                device: 0, set: try SyncCoder.decodeChangeSet(Array(set.description.utf8)))
        }
        for (room, count) in [(1, 1), (150_000, 1), (250_000, 2), (450_000, 4), (1 << 20, 5)] {
            let truths = try server.storage.truths(
                of: requests, setBytes: 1 << 20, maxBytes: room)
            let told = truths.map { $0.types.flatMap(\.update) }
            let wanted = (1...count).map { [RecordID.integer(Int64($0))] }
            #expect(told == wanted, "a room of \(room) bytes")
            let cut = truths.filter(\.isCut).count
            #expect(cut == 0, "a room of \(room) bytes")
        }
    }

    @Test(
        "the first is whole in the smallest room, however many records", arguments: StorageKind.all)
    func firstIsWhole(kind: StorageKind) async throws {
        let server = try await Self.server(kind, pages: 200, bytes: 1_000)
        var set = SetText("s", sequence: 1, seen: 1)
        for number in 1...200 {
            set = set.update("pages", "\(number)", #""revision":1,"number":3"#)
        }
        let request = CurrentRowsRequest(
            device: 0, set: try SyncCoder.decodeChangeSet(Array(set.description.utf8)))
        let truths = try server.storage.truths(of: [request], setBytes: 1 << 20, maxBytes: 1)
        let counts = truths.map { $0.types.first?.update.count }
        #expect(counts == [200])
        #expect(truths.first?.isCut == false)
    }
}
