import CompressionKit
import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

/// Tests that every device can take what a server accepts, and that the server refuses the rest in
/// words.
@Suite("Limits of what is kept and answered")
struct LimitTests {
    private static let schema = """
        CREATE TABLE pages (
            id INTEGER PRIMARY KEY, number INTEGER, one TEXT, two TEXT, three TEXT);
        """

    private static func text(_ count: Int) -> String { String(repeating: "x", count: count) }

    private static func filled(_ bytes: Int) -> String {
        """
        CREATE TABLE pages (
            id INTEGER PRIMARY KEY, number INTEGER, one TEXT DEFAULT '\(text(bytes))');
        """
    }

    private func creating(_ count: Int) -> SetText {
        var set = SetText()
        for number in 1...count { set = set.create("pages", "-\(number)") }
        return set
    }

    /// Fetches all rows, as a device does that asks for rows, and counts the answers.
    private func rows(
        of server: TestDataSet, most: Int
    ) throws -> (rows: [RecordID: Attributes], answers: Int) {
        var rows: [RecordID: Attributes] = [:]
        var (revision, lineage, answers) = (Revision(0), "", 0)
        while true {
            let named = lineage.isEmpty ? "" : #""lineage":"\#(lineage)","#
            let raw = try server.raw(
                #"{"protocol":1,"maxRevision":\#(revision),\#(named)"rows":true,"changeSets":[]}"#)
            try #require(raw.body.count <= most)
            let answer = try SyncCoder.decodeAnswer(raw.body)
            answers += 1
            #expect(answer.maxRevision >= revision)
            #expect((answer.lineage?.utf8.count ?? 0) <= Limits.nameBytes)
            for entry in answer.changeSets.flatMap({ $0["pages"]?.entries ?? [] }) {
                #expect(rows.updateValue(entry.attributes, forKey: entry.id) == nil)
            }
            revision = answer.maxRevision
            lineage = try #require(answer.lineage)
            guard answer.more else { return (rows, answers) }
            try #require(answers < 1_000)
        }
    }

    /// Has the server take in all that other programs wrote.
    private func takeExternalWrites(_ server: TestDataSet, now: Int64) throws {
        var steps = 0
        while server.node.takeExternalWrites(now: now) {
            steps += 1
            try #require(steps < 100)
        }
        try #require(server.node.takeFault() == nil)
    }

    @Test("a set that becomes too much for a device is refused", arguments: StorageKind.all)
    func entry(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.filled(100_000))
        let refused = try server.send(creating(400))
        #expect(refused.fate == "invalid")
        #expect(refused.message?.contains("smaller sets") == true)
        #expect(try server.rows("SELECT count(*) FROM pages") == "0")
        #expect(server.node.head.revision == 0)
        #expect(try server.send(creating(300)).fate == "accepted 1")
        let whole = try server.raw(#"{"protocol":1,"maxRevision":0,"changeSets":[]}"#)
        #expect(whole.body.count > 30_000_000 && whole.body.count <= Limits.inflatedBytes)
    }

    @Test(
        "sets that are much work are decided some at a time, and all in the end",
        arguments: StorageKind.all, [900, 1_200])
    func work(kind: StorageKind, count: Int) async throws {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE players (
                id INTEGER PRIMARY KEY, team INTEGER REFERENCES teams (id) ON DELETE CASCADE);
            CREATE INDEX players_team ON players (team);
            CREATE TABLE notes (id INTEGER PRIMARY KEY, player INTEGER NOT NULL REFERENCES players (id));
            CREATE INDEX notes_player ON notes (player);
            """)
        // How much is done at a time depends on the storage.
        server.isCompared = false
        server.node.share.mostSteps = 7_000_000
        let players = (1...count).map { "-\($0)" }
        let rows = players.map { "\"\($0)\":{\"team\":-1}" }.joined(separator: ",")
        try server.send(
            """
            {"types":["teams","players","notes"],\
            "teams":{"create":[-1],"update":[],"delete":[],"attributes":{"-1":{}}},\
            "players":{"create":[\(players.joined(separator: ","))],"update":[],"delete":[],\
            "attributes":{\(rows)}},\
            "notes":{"create":[-1],"update":[],"delete":[],"attributes":{"-1":{"player":-7}}}}
            """)
        // The note keeps each of them from being carried out, at its end.
        var sets = (1...7).map { SetText("s\($0)").delete("teams", "1") }
        sets.append(SetText("s8").create("teams", "-2", #""name":"B""#))
        let isThere = "SELECT count(*) FROM teams WHERE name = 'B'"
        var requests = 0
        while try server.rows(isThere) == "0" {
            let fates = try server.exchange(sets, at: 1).changeSets.map(\.fate)
            #expect(fates.allSatisfy { ["constraint", "busy", "accepted 2"].contains($0) })
            requests += 1
            try #require(requests < 9)
        }
        // One request would have done all of it, and kept everybody else waiting.
        #expect(requests > 1)
    }

    @Test("a record that becomes too much for a device is refused", arguments: StorageKind.all)
    func record(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        server.isCompared = false
        let part = Self.text(Limits.rowBytes / 2 - 100)
        try server.send(SetText().create("pages", "-1", #""one":"\#(part)""#))
        #expect(
            try server.send(SetText().update("pages", "1", #""revision":1,"two":"\#(part)""#)).fate
                == "accepted 2")
        let more = Self.text(Limits.unmeasuredBytes + 1)
        let refused = try server.send(
            SetText().update("pages", "1", #""revision":2,"three":"\#(more)""#))
        #expect(refused.fate == "constraint")
        #expect(refused.message?.contains("the most that a device can be sent") == true)
        #expect(try server.rows("SELECT count(*) FROM pages WHERE three IS NULL") == "1")
        // It can be sent as it is, and can be made smaller.
        #expect(try rows(of: server, most: Limits.inflatedBytes).rows.count == 1)
        #expect(
            try server.send(SetText().update("pages", "1", #""revision":2,"two":"\#(more)""#)).fate
                == "accepted 3")
    }

    @Test(
        "a record that another program makes too large is left out, and all others come",
        arguments: StorageKind.all)
    func externalRecordTooLarge(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        server.isCompared = false
        for number in 1...2 {
            try server.send(SetText().create("pages", "-\(number)", #""number":\#(number)"#))
        }
        let long =
            kind.isPostgres
            ? "repeat('x', \(Limits.rowBytes))" : "printf('%.*c', \(Limits.rowBytes), 'x')"
        // An escaped character takes six times as many bytes.
        let escaped =
            kind.isPostgres
            ? "repeat(chr(1), \(Limits.rowBytes / 6))"
            : "replace(printf('%.*c', \(Limits.rowBytes / 6), 'x'), 'x', char(1))"
        try server.execute(
            """
            UPDATE pages SET one = \(long) WHERE id = 1; UPDATE pages SET number = 22 WHERE id = 2;
            INSERT INTO pages (id, two) VALUES (7, \(escaped));
            """)
        try takeExternalWrites(server, now: 5_000)
        #expect(try rows(of: server, most: 1_000).rows.keys.sorted() == [.integer(2)])
        let entries = try server.answer(#"{"protocol":1,"maxRevision":2,"changeSets":[]}"#)
        #expect(entries.changeSets.flatMap { $0["pages"]?.update ?? [] } == [.integer(2)])
        #expect(try server.send(SetText().create("pages", "-3")).fate.hasPrefix("accepted"))
        // It arrives when it is repaired.
        try server.execute("UPDATE pages SET one = 'short' WHERE id = 1")
        try takeExternalWrites(server, now: 6_000)
        #expect(try rows(of: server, most: 2_000).rows[.integer(1)]?["one"] == "short")
    }

    @Test(
        "a set of many records in parts of a difference, each of which a device takes",
        arguments: StorageKind.all)
    func parted(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        server.isCompared = false
        var (create, update) = (SetText(), SetText())
        for number in 1...300 {
            create = create.create(
                "pages", "-\(number)", #""number":0,"one":"\#(Self.text(10_000))""#)
            update = update.update("pages", "\(number)", #""revision":1,"number":\#(number)"#)
        }
        try server.send(create)
        #expect(try server.send(update).fate == "accepted 2")
        let answerBytes = 256 << 10
        try server.restart(answerBytes: answerBytes)
        let (rows, answers) = try rows(of: server, most: 3 * answerBytes + 1_000)
        #expect(rows.count == 300)
        #expect(rows.allSatisfy { $0.value["number"] == $0.key.value })
        #expect(answers >= 4)
    }

    @Test(
        "rows of one revision that are too many for a listener: it is told to fetch them otherwise",
        arguments: StorageKind.all)
    func listening(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.filled(100_000))
        server.isCompared = false
        #expect(try server.send(creating(2)).fate == "accepted 1")
        #expect(try server.send(creating(300), from: "d2").fate == "accepted 2")
        let reader = server.reader()
        var request = DeltaRequest(principal: .ada, since: 0, byteLimit: .max)
        request.wantsRows = true
        guard case .batch(let first) = reader.deltas(request) else {
            Issue.record("no batch")
            return
        }
        #expect(first.isDifference && !first.isBehind && first.more && first.nextVersion == 1)
        #expect(try SyncCoder.decodeDeltaBatch(first.json).deltas.count == 2)
        request.advance(past: first)
        guard case .batch(let next) = reader.deltas(request) else {
            Issue.record("no batch")
            return
        }
        #expect(next.isBehind && !next.isDifference && next.json.count < 1_000)
        let (rows, _) = try rows(of: server, most: Limits.inflatedBytes)
        #expect(rows.count == 302)
    }

    @Test("an entry longer than a device takes: its author gets the ids, and the values as rows")
    func authorFormat() throws {
        var type = TypeChanges(name: "pages", create: [.integer(7)])
        type.entries = [
            RecordEntry(
                id: .integer(7), revision: 1,
                attributes: Attributes(
                    names: ["one", "two", "three"],
                    values: Array(repeating: .text(Self.text(Limits.entryBytes / 3)), count: 3)))
        ]
        var set = ChangeSet(types: [type])
        set.revision = 1
        let entry = LogEntry(
            revision: 1, device: 3, identifier: "a", sequence: 4, temporaries: "-2",
            body: try SyncCoder.encode(set), hash: LineageHash(origin: ""), time: 0)
        let bytes = try AuthorFormat.bytes(of: entry)
        #expect(bytes.count < 1_000)
        let own = try SyncCoder.decodeChangeSet(bytes)
        #expect(own.identifier == "a" && own.sequence == 4 && own.revision == 1)
        let record = try #require(own["pages"]?.entries.first)
        #expect(record.id == .integer(7) && record.oldID == .integer(-2))
        #expect(record.revision == 1 && record.attributes.isEmpty)
    }

    @Test(
        "a cursor within a revision survives what is written meanwhile", arguments: StorageKind.all)
    func cursor(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        var create = SetText()
        for number in 1...6 { create = create.create("pages", "-\(number)", #""number":0"#) }
        try server.send(create)
        let log = server.log()
        let first = try log.difference(
            DifferenceRequest(since: 0, maxBytes: 1, partBytes: 300)
        ) { .max }
        #expect(first.reached == 0 && !first.isWhole)
        #expect(first.rows.map(\.id) == [.integer(1), .integer(2)])
        // One record that has been sent changes, and one that has not.
        try server.send(SetText().update("pages", "2", #""revision":1,"number":2"#))
        try server.send(SetText().update("pages", "4", #""revision":1,"number":4"#))
        let rest = try log.difference(
            DifferenceRequest(since: 0, cursor: first.cursor, maxBytes: .max)
        ) { .max }
        #expect(rest.isWhole && rest.reached == 3)
        #expect(rest.rows.map(\.id) == [3, 5, 6, 2, 4].map { RecordID.integer($0) })
    }
}
