import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

/// A process with a node on a file that others write to, too.
private struct Process {
    let storage: CountingStorage
    let node: DataSetNode
    let reader: LogReader

    init(_ server: TestServer) throws {
        let store = try EmbeddedStore(
            path: server.path, script: server.script, identity: "other", now: 1)
        storage = CountingStorage(store, isShared: true)
        func log() -> EmbeddedLog {
            EmbeddedLog(path: server.path, vfs: nil, schema: store.schema)
        }
        node = try DataSetNode(
            storage: storage, log: log(), rules: .everything,
            cacheBytes: 4 << 20)
        reader = LogReader(
            feed: node.feed, log: log(),
            check: EmbeddedCheck(
                path: server.path, vfs: nil, schema: store.schema,
                unsendable: UnsendableRows()))
    }

    /// Sends sets; gives the revision reached.
    @discardableResult
    func send(
        _ server: TestServer, _ sets: [SetText], from client: String, at revision: Revision
    ) throws -> SyncAnswer {
        let list = sets.map(\.description).joined(separator: ",")
        let request = try server.admitted(
            """
            {"clientId":"\(client)","maxRevision":\(revision),"changeSets":[\(list)]}
            """)
        return try SyncCoder.decodeAnswer(node.process([request], now: 1)[0].get().body)
    }
}

@Suite("Feeds of a log that others write to")
struct FollowingTests {
    static let schema = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT)"

    private func team(_ number: Int) -> SetText {
        SetText("s\(number)", sequence: number).create("teams", "-\(number)", #""name":"T""#)
    }

    private func outcome(
        _ outcome: DataSetFeed.Outcome
    ) throws -> String {
        switch outcome {
        case .answer(let answer):
            "sets \(try SyncCoder.decodeAnswer(answer.body).changeSets.map { $0.revision ?? -1 })"
        case .problem(let problem): problem.kind
        case .needsLog: "needsLog"
        case .needsNode: "needsNode"
        }
    }

    private func pull(_ server: TestServer, at revision: Revision) throws -> AdmittedRequest {
        try server.admitted(#"{"maxRevision":\#(revision),"changeSets":[]}"#)
    }

    @Test("two processes take turns, and each has the other's entries in memory")
    func turns() throws {
        let server = try TestServer(Self.schema)
        let (one, two) = (try Process(server), try Process(server))
        try one.send(server, [team(1)], from: "d1", at: 0)
        #expect(try two.send(server, [team(1), team(2)], from: "d2", at: 0).maxRevision == 2)
        try one.send(server, [team(3), team(4)], from: "d1", at: 1)
        #expect(try outcome(one.node.feed.answer(to: pull(server, at: 0))) == "sets [1, 2, 3, 4]")
        #expect(two.node.head.revision == 2)
        #expect(try two.reader.catchUp() == one.node.head)
        #expect(try outcome(two.node.feed.answer(to: pull(server, at: 0))) == "sets [1, 2, 3, 4]")
        // Nothing new, and its own entries.
        try two.send(server, [team(5)], from: "d2", at: 4)
        #expect(try two.reader.catchUp().revision == 5)
        #expect(try outcome(two.node.feed.answer(to: pull(server, at: 3))) == "sets [4, 5]")
    }

    @Test("who is ahead of a process is answered once it has caught up, or is ahead indeed")
    func aheadOfProcess() throws {
        let server = try TestServer(Self.schema)
        let (one, two) = (try Process(server), try Process(server))
        try one.send(server, [team(1), team(2)], from: "d1", at: 0)
        let ahead = try pull(server, at: 2)
        #expect(try outcome(two.node.feed.answer(to: ahead)) == "needsLog")
        #expect(try outcome(two.reader.answer(to: ahead)) == "sets []")
        #expect(try outcome(two.reader.answer(to: pull(server, at: 3))) == "revisionAhead")
        try one.send(server, [team(3)], from: "d1", at: 2)
        var request = DeltaRequest(principal: .ada, since: 3)
        request.lineage = one.node.head.hash.text
        guard case .needsLog = two.node.feed.deltas(request) else {
            Issue.record("a cursor that is ahead is the reader's")
            return
        }
        guard case .batch(let batch) = two.reader.deltas(request) else {
            Issue.record("the reader catches up")
            return
        }
        #expect(batch.isEmpty && batch.nextVersion == 3)
        // The node is up to date when it has begun.
        try one.send(server, [team(4)], from: "d1", at: 3)
        #expect(try two.send(server, [team(9)], from: "d9", at: 4).maxRevision == 5)
        try one.send(server, [team(5)], from: "d1", at: 4)
        let known = try server.admitted(#"{"clientId":"d9","maxRevision":6,"changeSets":[]}"#)
        #expect(try two.node.process([known], now: 1)[0].get().revision == 6)
    }

    @Test("a gap that is too large is left to the log", arguments: [false, true])
    func largeGap(byNode: Bool) throws {
        let server = try TestServer(Self.schema)
        let (one, two) = (try Process(server), try Process(server))
        try two.send(server, [team(1)], from: "d2", at: 0)
        try one.send(server, (2...601).map { team($0) }, from: "d1", at: 0)
        if byNode {
            try two.send(server, [team(777)], from: "d2", at: 601)
            #expect(two.node.head.revision == 602)
        } else {
            #expect(try two.reader.catchUp().revision == 601)
        }
        #expect(try outcome(two.node.feed.answer(to: pull(server, at: 590))) == "needsLog")
        let rest = try outcome(two.reader.answer(to: pull(server, at: 598)))
        #expect(rest == (byNode ? "sets [599, 600, 601, 602]" : "sets [599, 600, 601]"))
        // It is the same log still: devices stay known.
        #expect(two.node.feed.knownDevice("d2") != nil)
    }

    @Test("a log that was set back to an older copy is noticed", arguments: [0, 1, 2])
    func restoredLog(entriesAfter: Int) throws {
        let server = try TestServer(Self.schema)
        let one = try Process(server)
        try one.send(server, [team(1), team(2), team(3)], from: "d1", at: 0)
        let old = one.node.head
        try server.execute(
            """
            DELETE FROM martlet_log WHERE revision > 2;
            UPDATE martlet_dataset SET revision = 2, \
            hash = (SELECT hash FROM martlet_log WHERE revision = 2);
            """)
        let two = try Process(server)
        if entriesAfter > 0 {
            try two.send(
                server, (7..<7 + entriesAfter).map { team($0) }, from: "d2", at: 0)
        }
        // What it knows of the history may be old, so it does not say so of itself.
        let device = try server.admitted(
            #"{"maxRevision":\#(two.node.head.revision),"changeSets":[],"lineage":"\#(two.node.head.hash.text)"}"#
        )
        if two.node.head.revision <= 3, entriesAfter == 1 {
            #expect(try outcome(one.node.feed.answer(to: device)) == "needsLog")
        }
        #expect(try one.reader.catchUp() == two.node.head)
        #expect(one.node.feed.knownDevice("d1") == nil)
        #expect(try outcome(one.reader.answer(to: device)) == "sets []")
        let lost = try server.admitted(
            #"{"maxRevision":3,"changeSets":[],"lineage":"\#(old.hash.text)"}"#)
        #expect(
            try outcome(one.reader.answer(to: lost))
                == (entriesAfter == 0 ? "revisionAhead" : "lineage"))
        #expect(
            try outcome(one.reader.answer(to: pull(server, at: 2)))
                == "sets \((0..<entriesAfter).map { $0 + 3 })")
    }

    @Test("a restored log is noticed by the node, before it decides")
    func restoredUnderTheNode() throws {
        let server = try TestServer(Self.schema)
        let one = try Process(server)
        try one.send(server, [team(1), team(2), team(3)], from: "d1", at: 0)
        let old = one.node.head
        try server.execute(
            """
            DELETE FROM martlet_log WHERE revision > 2;
            UPDATE martlet_dataset SET revision = 2, \
            hash = (SELECT hash FROM martlet_log WHERE revision = 2);
            """)
        let two = try Process(server)
        try two.send(server, [team(7), team(8)], from: "d2", at: 0)
        let request = try server.admitted(
            """
            {"clientId":"d3","maxRevision":3,"lineage":"\(old.hash.text)",\
            "changeSets":[\(team(9))]}
            """)
        guard case .failure(let problem) = one.node.process([request], now: 1)[0] else {
            Issue.record("the history is another one")
            return
        }
        #expect(problem.kind == "lineage")
        #expect(one.node.head == two.node.head)
    }

    @Test("the floor is followed")
    func floor() throws {
        let server = try TestServer(Self.schema)
        let (one, two) = (try Process(server), try Process(server))
        try one.send(server, [team(1), team(2), team(3)], from: "d1", at: 0)
        try one.send(
            server, [], from: "d1", at: 3)
        #expect(try two.reader.catchUp().revision == 3)
        #expect(one.node.compact(keeping: 1).isDone)
        #expect(one.node.feed.floor == 2)
        #expect(two.node.feed.floor == 0)
        try two.reader.catchUp()
        #expect(two.node.feed.floor == 2)
    }

    @Test("what other programs wrote is in memory and in answers like any entry")
    func externalWritesFollowed() throws {
        let server = try TestServer(Self.schema)
        let one = try Process(server)
        try one.send(server, [team(1)], from: "d1", at: 0)
        let body = #"{"revision":REVISION,"types":[],"changed":true}"#
        one.storage.outside = [body, body, body]
        let answer = try one.send(server, [team(2)], from: "d1", at: 1)
        #expect(answer.changeSets.map(\.revision) == [2, 3, 4])
        #expect(one.node.head == one.storage.head)
        #expect(try outcome(one.node.feed.answer(to: pull(server, at: 0))) == "sets [1, 2, 3, 4]")
        one.storage.outside += [body, body, body]
        #expect(one.node.takeExternalWrites(now: 5))
        #expect(one.node.head.revision == 6)
        #expect(!one.node.takeExternalWrites(now: 5))
        #expect(try outcome(one.node.feed.answer(to: pull(server, at: 5))) == "sets [6, 7, 8]")
        // Others' entries and others' processes at once.
        let two = try Process(server)
        try two.send(server, [team(3)], from: "d2", at: 8)
        one.storage.outside = [body]
        #expect(try one.send(server, [team(4)], from: "d1", at: 8).maxRevision == 11)
        #expect(try outcome(one.node.feed.answer(to: pull(server, at: 7))) == "sets [8, 9, 10, 11]")
        #expect(one.node.head == one.storage.head)
    }

    @Test("memory passes over what it has, and takes nothing of a history that is no more")
    func overlap() throws {
        let server = try TestServer(Self.schema)
        let one = try Process(server)
        try one.send(server, (1...5).map { team($0) }, from: "d1", at: 0)
        let cache = one.node.feed.cache
        let entries = try #require(cache.entries(from: 1, through: 5, maxBytes: 1 << 20))
        let version = cache.version
        cache.append(Array(entries[2...]), to: version.generation)
        #expect(cache.head == version.head)
        #expect(cache.entries(from: 1, through: 9, maxBytes: 1 << 20)?.count == 5)
        cache.reset(to: LogHead(revision: 3, hash: entries[2].hash), floor: 0)
        cache.append(Array(entries[3...]), to: version.generation)
        #expect(cache.head.revision == 3)
        #expect(!cache.reset(to: version.head, floor: 0, ifAt: version))
        cache.append(entries)
        #expect(cache.head == version.head)
        #expect(cache.generation == version.generation + 1)
        let other = LogEntry(
            revision: 4, device: 0, identifier: nil, sequence: nil, temporaries: nil, body: [],
            hash: LineageHash(origin: "other"), time: 1)
        cache.append([other])
        #expect(cache.head.revision == 4)
        #expect(cache.generation == version.generation + 2)
        #expect(cache.entries(from: 3, through: 4, maxBytes: 1 << 20) == nil)
    }
}
