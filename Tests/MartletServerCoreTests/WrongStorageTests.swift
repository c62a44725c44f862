import MartletModel
import MartletProtocol
import SQLiteKit
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

/// A log whose hashes cannot be read.
private final class UnreadableLog: LogSource {
    private let base: EmbeddedLog
    var isUnreadable = false

    init(_ base: EmbeddedLog) {
        self.base = base
    }

    func extent() throws(StorageFault) -> LogExtent { try base.extent() }
    func entries(
        from first: Revision, through last: Revision, maxBytes: Int
    ) throws(StorageFault) -> [LogEntry] {
        try base.entries(from: first, through: last, maxBytes: maxBytes)
    }
    func hash(at revision: Revision) throws(StorageFault) -> LineageHash? {
        guard !isUnreadable else { throw StorageFault(.failed, "the log cannot be read") }
        return try base.hash(at: revision)
    }
    func confirmation(of device: Int64) throws(StorageFault) -> Revision? {
        try base.confirmation(of: device)
    }
    func entries(at revisions: [Revision]) throws(StorageFault) -> [LogEntry] {
        try base.entries(at: revisions)
    }
    func difference(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart {
        try base.difference(request, limit: limit)
    }
    func times(of revisions: [Revision]) throws(StorageFault) -> [Revision: Int64] {
        try base.times(of: revisions)
    }
}

@Suite("Storages that do not do what they are asked")
struct WrongStorageTests {
    @Test(
        "no device is told of a file, since the data may be in a database",
        arguments: StorageFault.Kind.allCases)
    func words(kind: StorageFault.Kind) {
        let problem = RequestCheck.problem(for: StorageFault(kind, "storage"))
        #expect(problem.status == 503 && !problem.detail.contains("file"))
    }

    private func counting(
        _ server: TestServer, log: UnreadableLog? = nil
    ) throws -> (CountingStorage, DataSetNode) {
        let storage = CountingStorage(server.store)
        let base = EmbeddedLog(path: server.path, vfs: nil)
        let node = try DataSetNode(
            storage: storage, log: log ?? base,
            rules: .everything, cacheBytes: 1 << 20)
        return (storage, node)
    }

    private func request(_ sets: [SetText], at revision: Revision = 0) -> String {
        let list = sets.map(\.description).joined(separator: ",")
        return #"{"clientId":"d1","maxRevision":\#(revision),"changeSets":[\#(list)]}"#
    }

    @Test("facts or outcomes that are missing end the batch, and nothing has happened")
    func lacking() throws {
        let server = try TestServer(RandomSets.schema)
        let (storage, node) = try counting(server)
        let sets = [
            SetText("a", sequence: 1).create("words", "a"),
            SetText("b", sequence: 2).create("words", "b"),
        ]
        let batch = [try server.admitted(request(sets))]
        for (lacking, sentence) in [((1, 0), "facts"), ((0, 1), "how a set ended")] {
            storage.lacking = lacking
            let result = node.process(batch, now: 1)[0]
            #expect(throws: Problem.self) { try result.get() }
            #expect(node.takeFault()?.description.contains(sentence) == true)
            #expect(try server.rows("SELECT count(*) FROM words") == "0")
        }
        storage.lacking = (0, 0)
        #expect(try node.process(batch, now: 1)[0].get().accepted == 2)
    }

    @Test("a log that cannot be read to compare histories ends the batch, and nothing has happened")
    func unreadableLog() throws {
        let server = try TestServer(RandomSets.schema)
        // More than a node looks at when it begins.
        _ = try server.exchange(
            (1...600).map { (number: Int) in
                SetText("s\(number)", sequence: number).create("words", "w\(number)")
            })
        let log = UnreadableLog(EmbeddedLog(path: server.path, vfs: nil))
        let (_, node) = try counting(server, log: log)
        log.isUnreadable = true
        let text = """
            {"clientId":"d1","maxRevision":1,"lineage":"\(node.head.hash.text)",\
            "changeSets":[\(SetText("x", sequence: 601).create("words", "x"))]}
            """
        guard case .failure(let problem) = node.process([try server.admitted(text)], now: 1)[0]
        else {
            Issue.record("it was answered")
            return
        }
        #expect(problem.status == 503)
        #expect(node.takeFault()?.description.contains("the log cannot be read") == true)
        #expect(try server.rows("SELECT count(*) FROM words") == "600")
    }

    @Test("truths that fill an answer leave the other verdicts of the request for the next one")
    func fullOfTruth() throws {
        let server = try TestServer(RandomSets.schema)
        let (storage, node) = try counting(server)
        storage.truth = SetTruth(
            types: [TypeChanges(name: "teams", delete: [.integer(1)])], isCut: false,
            byteCount: Limits.answerBytes)
        // Each names more records than are asked about at once.
        let sets = (1...3).map { number in
            var set = SetText("s\(number)", sequence: number)
            for id in 1...4_100 { set = set.delete("teams", "\(id)") }
            return set
        }
        let answer = try SyncCoder.decodeAnswer(
            node.process([try server.admitted(request(sets))], now: 1)[0].get().body)
        #expect(answer.changeSets.map(\.identifier) == ["s1"])
        #expect(answer.changeSets.map(\.fate) == ["stale"])
        #expect(answer.more)
        #expect(storage.calls["truths"] == [1])
        // The device sends them again. The verdicts that it has already may be left out, as a
        // device does.
        let rest = try SyncCoder.decodeAnswer(
            node.process([try server.admitted(request(Array(sets[1...])))], now: 1)[0].get().body)
        #expect(rest.changeSets.map(\.identifier) == ["s2"])
        #expect(rest.more)
    }

    @Test("a truth that cannot be read ends the batch, and nothing has happened")
    func unreadableTruth() throws {
        let server = try TestServer(RandomSets.schema)
        let (storage, node) = try counting(server)
        storage.beforeTruths = { (session) throws(SQLiteError) in
            try session.connection.execute("ALTER TABLE teams RENAME TO gone")
        }
        let sets = [
            SetText("a", sequence: 1).create("words", "a"),
            SetText("b", sequence: 2).update("teams", "1", #""revision":0"#),
        ]
        let batch = [try server.admitted(request(sets))]
        #expect(throws: Problem.self) { try node.process(batch, now: 1)[0].get() }
        #expect(node.takeFault() != nil)
        #expect(try server.rows("SELECT count(*) FROM words") == "0")
        storage.beforeTruths = nil
        #expect(try node.process(batch, now: 1)[0].get().accepted == 1)
    }
}

@Suite("Rows written past Martlet's notes")
struct UnnotedRowTests {
    /// Has another program write without being noted.
    private func write(_ server: TestServer, _ sql: String) throws {
        try server.execute(
            """
            BEGIN; UPDATE martlet_dataset SET applying = 1; \(sql);
            UPDATE martlet_dataset SET applying = 0; COMMIT;
            """)
    }

    @Test("a record whose row is gone cannot be updated, and its truth says so")
    func goneRowOfUpdate() throws {
        let server = try TestServer(RandomSets.schema)
        try server.send(SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#))
        try write(server, "DELETE FROM teams")
        let set = try server.send(
            SetText("b", sequence: 2).update("teams", "1", #""revision":1,"name":"B""#))
        #expect(set.fate == "stale")
        #expect(set.message == "a record of “teams” is gone from its table")
        #expect(set.content == "teams delete [1]")
    }

    @Test("a row that nothing is known of is told with the revision zero")
    func unknownRow() throws {
        let server = try TestServer(RandomSets.schema)
        try write(server, "INSERT INTO teams VALUES (9, 'X')")
        let set = try server.send(
            SetText("b", sequence: 1).update("teams", "9", #""revision":0,"name":"B""#))
        #expect(set.fate == "stale")
        #expect(set.content == "teams update [9] 9@0(name=X)")
    }

    @Test("a foreign key of two columns that does not hold is refused, without its name")
    func twoColumns() throws {
        let server = try TestServer(
            """
            CREATE TABLE places (id INTEGER PRIMARY KEY, x INTEGER, y INTEGER, UNIQUE (x, y));
            CREATE TABLE visits (
                id INTEGER PRIMARY KEY, x INTEGER, y INTEGER,
                FOREIGN KEY (x, y) REFERENCES places (x, y));
            """)
        try server.send(SetText("a", sequence: 1).create("places", "-1", #""x":1,"y":2"#))
        let good = SetText("b", sequence: 2).create("visits", "-1", #""x":1,"y":2"#)
        #expect(try server.send(good).fate == "accepted 2")
        let bad = try server.send(
            SetText("c", sequence: 3).create("visits", "-2", #""x":2,"y":1"#))
        #expect(bad.fate == "constraint")
        #expect(bad.message == "a foreign key of the database would not hold")
    }
}
