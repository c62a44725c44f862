import MartletModel
import MartletProtocol
import SetTexts
import Testing
import TextComparison

@testable import MartletServerCore

@Suite("Differences")
struct DifferenceTests {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
        CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
        """

    /// Six revisions: a team made, changed twice; another made and deleted; a note.
    private static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.send(SetText("a1", sequence: 1).create("teams", "-1", #""name":"A""#))
        try server.send(SetText("a2", sequence: 2).create("teams", "-2", #""name":"B""#))
        try server.send(
            SetText("a3", sequence: 3).update("teams", "1", #""revision":1,"size":3"#))
        try server.send(SetText("a4", sequence: 4).create("notes", "n7", #""body":"x""#))
        try server.send(SetText("a5", sequence: 5).delete("teams", "2"))
        try server.send(
            SetText("a6", sequence: 6).update("teams", "1", #""revision":3,"name":"C""#))
        return server
    }

    private static func pull(
        _ since: Int, _ client: String = "d2", _ more: String = "", sets: [SetText] = []
    ) -> String {
        """
        {"clientId":"\(client)","protocol":1,"maxRevision":\(since),\(more)\
        "changeSets":[\(sets.map(\.description).joined(separator: ","))]}
        """
    }

    @Test(
        "take the place of entries for who is behind the floor, and for nobody else",
        arguments: StorageKind.all)
    func floor(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let entries = try server.answer(Self.pull(4))
        server.compact(keeping: 2)
        #expect(server.node.feed.floor == 4)
        #expect(try server.answer(Self.pull(4)) == entries)
        let answer = try server.answer(Self.pull(3))
        #expect(answer.maxRevision == 6)
        #expect(!answer.more)
        #expect(answer.lineage == entries.lineage)
        let set = try #require(answer.changeSets.first)
        #expect(answer.changeSets.count == 1)
        #expect(set.isDifference)
        #expect(set.revision == 6)
        #expect(
            set.content
                == "notes update [n7] n7@4(body=x); teams update [1] delete [2] 1@6(name=C size=3)")
    }

    @Test("are empty, but there, for who asks for rows and misses none", arguments: StorageKind.all)
    func rowsAskedForByCurrentDevice(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let answer = try server.answer(Self.pull(6, "d2", #""rows":true,"#))
        #expect(answer.changeSets.map(\.isDifference) == [true])
        #expect(answer.changeSets[0].types.isEmpty)
        #expect(answer.maxRevision == 6)
        let all = try server.answer(Self.pull(0, "d2", #""rows":true,"#))
        #expect(all.changeSets.map(\.isDifference) == [true])
        #expect(all.changeSets[0].recordCount == 3)
        // Nothing is compacted: without the word there are entries.
        #expect(try server.answer(Self.pull(0)).changeSets.count == 6)
    }

    @Test(
        "stand before the device's own sets and the refused ones, all at one revision",
        arguments: StorageKind.all)
    func ownSets(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        server.compact(keeping: 0)
        let answer = try server.answer(
            Self.pull(
                0, "d2",
                sets: [
                    SetText("b1", sequence: 1, seen: 0).create("teams", "-9", #""name":"N""#),
                    SetText("b2", sequence: 2, seen: 0).update(
                        "teams", "1", #""revision":1,"size":9"#),
                ]))
        #expect(answer.maxRevision == 7)
        #expect(answer.changeSets.map(\.isDifference) == [true, false, false])
        #expect(answer.changeSets.map(\.fate) == ["accepted 7", "accepted 7", "stale"])
        // The difference has the new record as everyone sees it, the own form as its author does.
        #expect(answer.changeSets[0]["teams"]?.update == [.integer(1), .integer(3)])
        #expect(answer.changeSets[1]["teams"]?.entries[0].oldID == .integer(-9))
        #expect(answer.changeSets[1].identifier == "b1")
        #expect(answer.changeSets[2].content == "teams update [1] 1@6(name=C size=3)")
    }

    @Test(
        "are cut at revisions; what became of sets is told beside the last part",
        arguments: StorageKind.all)
    func partsOfDifferenceAreCut(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        server.compact(keeping: 1)
        try server.restart(answerBytes: 60)
        let sets = [
            SetText("b1", sequence: 1, seen: 0).create("teams", "-1", #""name":"N""#),
            SetText("b2", sequence: 2, seen: 0).delete("teams", "2"),
        ]
        var reached: [Revision] = []
        var fates: [[String]] = []
        var more = true
        while more, reached.count < 9 {
            let since = Int(reached.last ?? 0)
            let answer = try server.answer(
                Self.pull(since, "d2", since > 0 ? #""rows":true,"# : "", sets: sets))
            reached.append(answer.maxRevision)
            fates.append(answer.changeSets.map(\.fate))
            more = answer.more
            // Another device writes between the parts; its change comes with a later one.
            if reached.count == 2 {
                try server.send(
                    SetText("a7", sequence: 7).update("notes", "n7", #""revision":4,"body":"y""#))
            }
        }
        // The last rows leave no room for what became of the sets.
        #expect(reached == reached.sorted() && reached.last == 8 && (4..<9).contains(reached.count))
        #expect(fates.last == ["accepted 8", "accepted 7", "stale"])
        #expect(fates.dropLast().allSatisfy { $0.count == 1 })
        #expect(try server.rows("SELECT count(*) FROM teams WHERE name = 'N'") == "1")
    }

    @Test(
        "know repeated sets: whole until they are acknowledged, then by name for ever",
        arguments: StorageKind.all)
    func repeats(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        server.compact(keeping: 0)
        let again = SetText("a1", sequence: 1).create("teams", "-1", #""name":"A""#)
        let kept = try server.answer(Self.pull(0, "d1", sets: [again]))
        #expect(kept.changeSets.map(\.fate) == ["accepted 6", "accepted 1"])
        #expect(kept.changeSets[1]["teams"]?.entries[0].oldID == .integer(-1))
        try server.acknowledge(2, "d1")
        expectText(
            try server.text(),
            """
            teams 1 @6 by d1: name C, size 3
            notes n7 @4 by d1: body x
            teams 2 @5 by d1, deleted
            log 1, a1/1 by d1: emptied
            log 2, a2/2 by d1: emptied
            log 3, a3/3 by d1: teams update [1] 1@3(size=3)
            log 4, a4/4 by d1: notes create [n7] n7@4(body=x)
            log 5, a5/5 by d1: teams delete [2]
            log 6, a6/6 by d1: teams update [1] 1@6(name=C)
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            refused, ack-d1-2/9002 by d1: stale
            device d1, has the answers up to 2
            """)
        for since in [0, 6] {
            let bare = try server.answer(Self.pull(since, "d1", sets: [again]))
            let set = try #require(bare.changeSets.last)
            #expect(set.fate == "accepted 1")
            #expect(set.conflict == false)
            #expect(set.identifier == "a1")
            #expect(set.types.isEmpty)
        }
        // Another set under the same name is still found out, and nothing is applied twice.
        let other = SetText("a1", sequence: 1).create("teams", "-1", #""name":"Z""#)
        #expect(
            try server.answer(Self.pull(6, "d1", sets: [other])).changeSets.last?.fate == "invalid")
        #expect(server.node.head.revision == 6)
    }

    @Test("compressed and plain say the same, and outlast a restart", arguments: StorageKind.all)
    func restartBehindCompaction(kind: StorageKind) async throws {
        let server = try await AnswerTests.server(kind)
        let plain = try server.raw(Self.pull(0, "d3", #""rows":true,"#))
        server.compact(keeping: 100)
        let zipped = try server.raw(Self.pull(0, "d3"), gzip: true)
        #expect(zipped.isDifference)
        #expect(zipped.gainsByGzip && !plain.gainsByGzip)
        #expect(zipped.body == plain.body)
        try server.restart()
        #expect(server.node.feed.floor == 600)
        #expect(try server.raw(Self.pull(0, "d3")).body == plain.body)
        #expect(try server.answer(Self.pull(600, "d3")).changeSets.count == 100)
        // From memory where there are entries, never where there are not.
        guard
            case .needsLog = server.node.feed.answer(to: try server.admitted(Self.pull(599, "d3"))),
            case .answer = server.node.feed.answer(to: try server.admitted(Self.pull(600, "d3")))
        else {
            Issue.record("the feed does not know the floor")
            return
        }
    }

    @Test("a reader that finds entries emptied under it turns to rows", arguments: StorageKind.all)
    func emptiedMeanwhile(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        // A feed of its own, which is not told of the floor.
        let other = try server.otherNode(cacheBytes: 0)
        let reader = server.reader(of: other.feed)
        try server.acknowledge(6, "d1")
        server.compact(keeping: 2)
        #expect(other.feed.floor == 0)
        guard
            case .answer(let answer) = reader.answer(
                to: try server.admitted(#"{"maxRevision":1,"changeSets":[]}"#)),
            case .batch(let batch) = reader.deltas(
                DeltaRequest(principal: .ada, since: 1))
        else {
            Issue.record("no answer")
            return
        }
        #expect(answer.isDifference)
        #expect(answer.revision == 6)
        #expect(batch.isDifference)
        #expect(batch.nextVersion == 6)
    }

    @Test(
        "do not go to who takes entries only: it is told where to go on, and nothing else",
        arguments: StorageKind.all)
    func entriesOnly(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.acknowledge(6, "d1")
        server.compact(keeping: 2)
        let reader = server.reader()
        var request = DeltaRequest(principal: .ada, since: 1)
        request.takesEntriesOnly = true
        guard case .batch(let batch) = reader.deltas(request) else {
            Issue.record("no batch")
            return
        }
        #expect(
            String(decoding: batch.json, as: UTF8.self)
                == #"{"from":1,"dataSet":"\#(TestDataSet.identity)","behind":true,"goesOn":6,"#
                + #""deltas":[],"nextVersion":1}"#)
        #expect(!batch.isEmpty && batch.isBehind && !batch.isDifference)
        // Behind it come entries, from the head on.
        request.advance(past: batch)
        #expect(request.since == 6)
        try server.send(SetText("a7", sequence: 7).create("teams", "-7", #""name":"G""#))
        guard case .batch(let next) = reader.deltas(request) else {
            Issue.record("no batch")
            return
        }
        let read = try SyncCoder.decodeDeltaBatch(next.json)
        #expect(read.from == 6 && read.nextVersion == 7 && !read.isBehind)
        #expect(read.deltas.map(\.version) == [7])
    }

    @Test(
        "nor do large batches of entries: who fetches beside is told how far, and where it goes on",
        arguments: StorageKind.all)
    func largeBatches(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let name = String(repeating: "x", count: 300)
        for number in 1...6 {
            try server.send(
                SetText("a\(number)", sequence: number)
                    .create("teams", "-\(number)", #""name":"\#(name)""#))
        }
        let reader = server.reader()
        var whole = DeltaRequest(principal: .ada, since: 0)
        whole.mostEntryBytes = 1_000
        var request = whole
        request.takesEntriesOnly = true
        // Made for this listener first, then found made for another.
        for _ in 0..<2 {
            guard case .batch(let batch) = reader.deltas(request) else {
                Issue.record("no batch")
                return
            }
            let read = try SyncCoder.decodeDeltaBatch(batch.json)
            #expect(read.isBehind && read.goesOn == 6 && read.deltas.isEmpty)
            #expect(read.from == 0 && read.nextVersion == 0 && batch.position == 6)
            #expect(server.node.feed.madeDeltas(request) == nil)
            guard case .batch(let entries) = reader.deltas(whole) else {
                Issue.record("no batch")
                return
            }
            #expect(
                try SyncCoder.decodeDeltaBatch(entries.json).deltas.map(\.version) == Array(1...6))
        }
        // What is small comes as it is.
        request.since = 4
        guard case .batch(let small) = reader.deltas(request) else {
            Issue.record("no batch")
            return
        }
        #expect(try SyncCoder.decodeDeltaBatch(small.json).deltas.map(\.version) == [5, 6])
    }

    @Test("never name a revision that the feed has not reached", arguments: StorageKind.all)
    func aheadOfTheFeed(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let log = server.log()
        let part = try log.difference(after: 0, maxBytes: 1 << 20) { 4 }
        #expect(part.reached == 4)
        #expect(part.head.revision == 6)
        #expect(!part.isWhole)
        #expect(part.rows.map(\.position) == [4])
        let rest = try log.difference(after: 4, maxBytes: 1 << 20) { 9 }
        #expect(rest.isWhole)
        #expect(rest.rows.map(\.position) == [5, 6])
    }

    @Test("a row that another program removed is gone", arguments: StorageKind.embedded)
    func externalRemoval(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.execute("DELETE FROM notes")
        let answer = try server.answer(Self.pull(3, "d2", #""rows":true,"#))
        #expect(answer.changeSets[0]["notes"]?.delete == [.text("n7")])
    }
}

@Suite("Compaction")
struct CompactionTests {
    @Test(
        "goes in small steps, and passes over what is not acknowledged", arguments: StorageKind.all)
    func steps(kind: StorageKind) async throws {
        let server = try await AnswerTests.server(kind)
        try server.acknowledge(700, "d1")
        var step = server.node.compact(keeping: 650, entries: 20)
        // The first fifty are d1's.
        #expect(step == CompactionStep(emptied: 20, floor: 20, isDone: false))
        step = server.node.compact(keeping: 650, entries: 20)
        step = server.node.compact(keeping: 650, entries: 20)
        #expect(step == CompactionStep(emptied: 10, floor: 50, isDone: true))
        step = server.node.compact(keeping: 600)
        #expect(step == CompactionStep(emptied: 0, floor: 100, isDone: true))
        #expect(server.node.compactable(keeping: 500) == 100)
        // Asking to keep more brings nothing back.
        step = server.node.compact(keeping: 700)
        #expect(step == CompactionStep(emptied: 0, floor: 100, isDone: true))
        #expect(
            try server.rows(
                """
                SELECT count(*), count(*) FILTER (WHERE temporaries IS NULL) FROM martlet_log \
                WHERE length(body) = 0
                """)
                == "50|50")
    }

    @Test("leaves the chain of hashes and the verdicts as they were", arguments: StorageKind.all)
    func lineage(kind: StorageKind) async throws {
        let server = try await AnswerTests.server(kind)
        let before = try server.rows(
            "SELECT revision, identifier, sequence, hex(content), hex(hash) FROM martlet_log "
                + "ORDER BY revision")
        for device in ["d1", "d2"] {
            try server.acknowledge(700, device)
        }
        server.compact(keeping: 0)
        #expect(
            try server.rows(
                "SELECT revision, identifier, sequence, hex(content), hex(hash) FROM martlet_log "
                    + "ORDER BY revision")
                == before)
        try server.restart()
        let hash = try #require(try server.log().hash(at: 3))
        let good = #"{"maxRevision":3,"protocol":1,"lineage":"\#(hash.text)","changeSets":[]}"#
        #expect(try server.answer(good).changeSets.map(\.isDifference) == [true])
        let bad = #"{"maxRevision":3,"protocol":1,"lineage":"00","changeSets":[]}"#
        #expect(try server.problem(bad)?.kind == "lineage")
        #expect(try server.answer(#"{"maxRevision":700,"changeSets":[]}"#).changeSets.isEmpty)
        #expect(try server.send(SetText("z").create("teams", "-9000")).fate == "accepted 701")
    }
}
