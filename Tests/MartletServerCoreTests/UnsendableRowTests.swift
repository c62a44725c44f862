import Foundation
import MartletModel
import MartletProtocol
import SQLiteKit
import SQLiteRecords
import SetTexts
import Synchronization
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("Rows that no device can be sent")
struct UnsendableRowTests {
    private static let script = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, share REAL, fee NUMERIC, logo BLOB);
        CREATE TABLE notes (
            id TEXT PRIMARY KEY, team INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE guests (
            id INTEGER PRIMARY KEY, name TEXT,
            team INTEGER REFERENCES teams (id) ON DELETE SET NULL);
        """

    /// What was told of rows that were left out.
    private final class Told: Sendable {
        private let lines = Mutex<[String]>([])

        var rows: UnsendableRows {
            UnsendableRows { row, isNew in
                self.lines.withLock {
                    $0.append("\(isNew ? "new " : "")\(row.type) \(row.id): \(row.reason)")
                }
            }
        }

        var all: [String] { lines.withLock { $0 } }
    }

    /// Three teams, each made by a set of its own.
    private func server() throws -> TestServer {
        let server = try TestServer(Self.script)
        for number in 1...3 {
            try server.send(
                SetText("a\(number)", sequence: number).create(
                    "teams", "-\(number)", #""name":"T\#(number)","share":0.5"#))
        }
        return server
    }

    private static let pull = #"{"protocol":1,"maxRevision":0,"rows":true,"changeSets":[]}"#

    /// Values that SQLite holds and the wire does not, and what is said of them.
    static let values = [
        ("name", "CAST(x'41ff' AS TEXT)", "column “name” holds text that is not UTF-8"),
        ("name", "x'00'", "column “name” holds binary data, but is not declared BLOB"),
        ("share", "9e999", "column “share” holds an infinity, which no device can be sent"),
        ("fee", "-9e999", "column “fee” holds an infinity, which no device can be sent"),
        ("fee", "CAST(x'ff' AS TEXT)", "column “fee” holds text that is not UTF-8"),
    ]

    @Test("are left out of differences, and told of; all others come", arguments: values)
    func differenceLeavesOutUnsendable(column: String, value: String, reason: String) throws {
        let server = try server()
        try server.execute("UPDATE teams SET \(column) = \(value) WHERE id = 2")
        let told = Told()
        let store = try EmbeddedStore(
            path: server.path, script: Self.script, identity: "other", now: 1,
            unsendable: told.rows)
        let node = try DataSetNode(store: store)
        #expect(!node.takeExternalWrites(now: 1))
        #expect(told.all == ["new teams 2: \(reason)"])
        for _ in 0..<2 {
            let prepared = try node.process([try server.admitted(Self.pull)], now: 2)[0].get()
            let answer = try SyncCoder.decodeAnswer(prepared.body)
            #expect(answer.maxRevision == 4 && !answer.more)
            #expect(answer.changeSets[0]["teams"]?.update == [.integer(1), .integer(3)])
            #expect(answer.changeSets[0]["teams"]?.delete == [])
        }
        #expect(told.all.dropFirst() == ["teams 2: \(reason)", "teams 2: \(reason)"])
        var request = DeltaRequest(principal: .ada, since: 0)
        request.wantsRows = true
        guard case .batch(let batch) = LogReader(feed: node.feed, store: store).deltas(request)
        else {
            Issue.record("no batch")
            return
        }
        #expect(try SyncCoder.decodeDeltaBatch(batch.json).deltas.map(\.id) == ["1", "3"])
        #expect(batch.nextVersion == 4 && told.all.count == 4)
    }

    @Test("under a key that no record can have are told of, with the key as SQL writes it")
    func keysNoRecordCanHave() throws {
        let server = try server()
        let told = Told()
        let store = try EmbeddedStore(
            path: server.path, script: Self.script, identity: "other", now: 1,
            unsendable: told.rows)
        let node = try DataSetNode(store: store)
        let long = String(repeating: "00", count: 64)
        try server.execute(
            """
            INSERT INTO notes VALUES (x'00a1', 2), (CAST(x'41ff' AS TEXT), 2), (NULL, 2), (zeroblob(65), 2), \
            ('near', 2)
            """)
        #expect(!node.takeExternalWrites(now: 1))
        let neither =
            "its key cannot be sent: column “id” holds neither an integer nor text where an id"
        #expect(
            told.all == [
                "new notes x'00a1': \(neither) is expected",
                "new notes CAST(x'41ff' AS TEXT): its key cannot be sent: column “id” holds text that "
                    + "is not UTF-8",
                "new notes NULL: its key cannot be sent: column “id” is null where a record's id is "
                    + "expected",
                "new notes x'\(long)…': \(neither) is expected",
            ])
        #expect(node.head.revision == 4)
        // They are told of as long as they are there, and not as new.
        try server.execute("UPDATE notes SET team = 3 WHERE id = x'00a1'")
        #expect(!node.takeExternalWrites(now: 2))
        #expect(told.all.last == "notes x'00a1': \(neither) is expected")
    }

    @Test("are not named in the truth beside a refusal, and hold up no other request")
    func truth() throws {
        let server = try server()
        try server.execute("UPDATE teams SET name = x'00' WHERE id = 2")
        let stale = SetText("b1", sequence: 1).update("teams", "2", #""revision":1,"share":1"#)
        let refused = try server.send(stale, from: "d2", at: 1)
        #expect(refused.fate == "stale")
        #expect(refused.types.flatMap(\.entries).isEmpty)
        // No device has seen what the row is: it is put right in the file.
        let own = try server.send(
            SetText("b2", sequence: 2).update("teams", "2", #""revision":2,"name":"Owls""#),
            from: "d2")
        #expect(own.fate == "stale")
        try server.execute("UPDATE teams SET name = 'Owls' WHERE id = 2")
        #expect(!server.node.takeExternalWrites(now: 5))
        #expect(server.node.head.revision == 5)
        #expect(
            try server.answer(Self.pull).changeSets[0]["teams"]?.update.last == .integer(2))
    }

    @Test("under a key that no record can have stand in no set's way")
    func foreignKey() throws {
        let server = try server()
        try server.execute(
            "INSERT INTO notes VALUES (x'0102', 2), (CAST(x'ff' AS TEXT), 2)")
        let fate = try server.send(
            SetText("a4", sequence: 4).delete("teams", "2"), from: "d1"
        ).fate
        #expect(fate == "accepted 4")
        #expect(try server.rows("SELECT count(*) FROM notes") == "0")
    }

    @Test("keep a record from being deleted that they refer to, until they are corrected")
    func parent() throws {
        let server = try server()
        try server.send(SetText().create("guests", "-9", #""name":"Ann","team":2"#))
        try server.execute("UPDATE guests SET name = x'00'")
        let refused = SetText("a4", sequence: 4, seen: 4).delete("teams", "2")
        #expect(try server.send(refused).fate == "stale")
        try server.execute("DELETE FROM guests")
        let deleted = SetText("a5", sequence: 5).delete("teams", "2")
        #expect(try server.send(deleted).fate == "accepted 7")
        let pull = #"{"protocol":1,"maxRevision":5,"changeSets":[]}"#
        #expect(
            try server.answer(pull).changeSets.map(\.content)
                == ["guests delete [1]", "teams delete [2]"])
    }

    @Test("are left out of snapshots, which are sound", arguments: values)
    func snapshotWithoutUnsendable(column: String, value: String, reason: String) throws {
        let server = try server()
        try server.execute("UPDATE teams SET \(column) = \(value) WHERE id = 2")
        #expect(!server.node.takeExternalWrites(now: 5))
        let told = Told()
        let path = server.folder.appendingPathComponent("all.sqlite").path
        let cut = try SnapshotMaker(path: server.path, unsendable: told.rows).make { _ in path }
        #expect(told.all == ["new teams 2: \(reason)"])
        #expect(cut.parts[0].records.map(\.count) == [2])
        let reader = try SnapshotReader(path: path)
        try reader.verify()
        var ids: [RecordID] = []
        try reader.forEach(of: 0) { id, _, _ in ids.append(id) }
        #expect(ids == [.integer(1), .integer(3)])
        #expect(try reader.connection.integer("SELECT count(*) FROM martlet_records") == 2)
    }

    @Test("are named as left out where a device compares, whatever it holds of them")
    func checkNamesLeftOut() throws {
        let server = try server()
        let whole = try hash(server, [1, 3])
        try server.execute("UPDATE teams SET name = CAST(x'ff' AS TEXT) WHERE id = 2")
        #expect(!server.node.takeExternalWrites(now: 5))
        let type = CheckedType(
            name: "teams",
            attributes: [
                CheckedAttribute(name: "name", kind: "text"),
                CheckedAttribute(name: "share", kind: "real"),
            ], ranges: [CheckedRange(hash: RangeHash(count: 40, sum: 1))])
        var request = CheckRequest(revision: 3, types: [type])
        let told = Told()
        let check = EmbeddedCheck(
            path: server.path, vfs: nil, schema: server.store.schema, unsendable: told.rows)
        request.types[0].ranges = [
            CheckedRange(hash: RangeHash(count: 40, sum: 1)), CheckedRange(hash: whole),
        ]
        let found = try check.compare(request).types[0].ranges
        guard case .rows(let rows) = found[0], case .rows(let again) = found[1] else {
            Issue.record("\(found)")
            return
        }
        #expect(rows.rows.map(\.id) == [.integer(1), .integer(3)])
        #expect(rows.without == [.integer(2)] && again.without == [.integer(2)])
        #expect(told.all.first == "new teams 2: column “name” holds text that is not UTF-8")
        // Changed since, it is left out once.
        request.revision = 1
        guard case .rows(let changed) = try check.compare(request).types[0].ranges[0] else {
            return
        }
        #expect(changed.without == [.integer(2), .integer(3)])
    }

    @Test("take nothing from the hash of a range, which is that of all others")
    func hashed() throws {
        let server = try server()
        for start in stride(from: 4, through: 60, by: 1) {
            try server.send(SetText().create("teams", "-\(start)", #""name":"T","share":0.5"#))
        }
        let others = try hash(server, [1] + Array(3...60))
        try server.execute("UPDATE teams SET share = 9e999 WHERE id = 2")
        #expect(!server.node.takeExternalWrites(now: 5))
        let range = CheckedRange(hash: RangeHash(count: 60, sum: 1))
        let type = CheckedType(
            name: "teams",
            attributes: [
                CheckedAttribute(name: "name", kind: "text"),
                CheckedAttribute(name: "share", kind: "real"),
            ], ranges: [range])
        let check = EmbeddedCheck(
            path: server.path, vfs: nil, schema: server.store.schema,
            unsendable: UnsendableRows())
        let found = try check.compare(CheckRequest(revision: 60, types: [type]))
        #expect(found.types[0].ranges == [.hash(others, without: [.integer(2)])])
    }

    private func hash(_ server: TestServer, _ ids: [Int64]) throws -> RangeHash {
        let connection = try Connection(path: server.path)
        let type = server.store.schema.types[0]
        let table = RecordTable(type: type, connection: connection)
        var hasher = RowHasher(
            type: type, attributes: type.attributes.filter { ["name", "share"].contains($0.name) })
        var hash = RangeHash()
        for id in ids {
            guard let row = try table.read(.integer(id)) else { continue }
            let revision = try connection.integer(
                "SELECT revision FROM martlet_records WHERE type = 1 AND id = \(id)")
            hash.add(row: hasher.hash(.integer(id), row))
            hash.add(mark: hasher.mark(.integer(id), revision ?? 0))
        }
        return hash
    }

    @Test("do not keep a server from starting with a new column, but from taking a table in")
    func opening() throws {
        let server = try server()
        try server.execute("UPDATE teams SET name = x'00' WHERE id = 2")
        try server.restart(
            script: Self.script.replacing("logo BLOB", with: "logo BLOB, rank INTEGER DEFAULT 3"))
        #expect(
            try server.answer(
                #"{"protocol":1,"maxRevision":3,"changeSets":[]}"#
            ).changeSets.map(\.content) == ["teams update [1, 3] 1@1(rank=3) 3@3(rank=3)"])
        let error = #expect(throws: SchemaError.self) {
            _ = try TestServer(Self.script) { connection in
                try connection.execute(
                    """
                    CREATE TABLE teams (
                        id INTEGER PRIMARY KEY, name TEXT, share REAL, fee NUMERIC, logo BLOB);
                    INSERT INTO teams(id, name) VALUES (7, x'00')
                    """)
            }
        }
        #expect(
            error?.message.contains(
                "with the key 7: column “name” holds binary data, but is not declared BLOB;")
                == true)
    }
}
