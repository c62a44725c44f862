import Foundation
import MartletModel
import MartletProtocol
import SQLiteKit
import SQLiteRecords
import Testing

@Suite("Snapshot reader")
struct SnapshotReaderTests {
    private static let tables = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE players (
            id TEXT PRIMARY KEY, team INTEGER REFERENCES teams (id), height REAL);
        """

    /// Makes a snapshot of two teams and three players, spoils it, and gives its path to `body`.
    private func withSnapshot(
        _ spoil: String = "", bytes change: ((inout [UInt8]) -> Void)? = nil,
        _ body: (String) throws -> Void
    ) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-snapshot-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("s.sqlite").path
        try make(path, spoil)
        if let change {
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            change(&bytes)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
        }
        try body(path)
    }

    private func make(_ path: String, _ spoil: String) throws {
        let connection = try Connection(path: path)
        try connection.execute(Self.tables)
        try SnapshotFormat.createTables(on: connection, in: "main")
        try connection.execute(
            """
            INSERT INTO teams VALUES (3, 'Eagles'), (7, 'Owls');
            INSERT INTO players VALUES ('a', 3, 1.7), ('b', 7, 1.8), ('c', NULL, NULL);
            INSERT INTO martlet_types VALUES (1, 'teams'), (2, 'players');
            INSERT INTO martlet_records VALUES
                (1, 3, 10), (1, 7, 12), (2, 'a', 12), (2, 'b', 11), (2, 'c', 9);
            """)
        let schema = try SchemaReader.read(connection)
        let types = try zip(schema.types, [1, 2] as [Int64]).map { type, number in
            var hasher = RowHasher(type: type)
            return SnapshotDescription.TypeAccount(
                name: type.name, hash: try hasher.whole(on: connection, number: number))
        }
        try SnapshotFormat.write(
            SnapshotDescription(
                dataSet: "d1", revision: 12, lineage: "ab", schema: schema.fingerprint,
                part: "all", parts: ["all"],
                types: types),
            on: connection, in: "main")
        try connection.execute(spoil)
    }

    private func refusal(_ path: String, dataSet: String? = nil) -> SnapshotError.Kind? {
        do {
            let reader = try SnapshotReader(path: path)
            try reader.expect(dataSet: dataSet)
            try reader.verify()
            return nil
        } catch {
            return (error as? SnapshotError)?.kind
        }
    }

    @Test("reads what it is a snapshot of, and every record by key with its revision")
    func readsSnapshot() throws {
        try withSnapshot { path in
            let reader = try SnapshotReader(path: path)
            try reader.verify()
            try reader.expect(dataSet: "d1")
            #expect(reader.description.revision == 12)
            #expect(reader.description.records == 5)
            #expect(reader.numbers == [1, 2])
            var found: [String] = []
            for type in [0, 1] {
                try reader.forEach(of: type) { id, revision, attributes in
                    found.append("\(id) \(revision) \(attributes.values.count)")
                }
            }
            #expect(found == ["3 10 1", "7 12 1", "a 12 2", "b 11 2", "c 9 2"])
        }
    }

    @Test(
        "refuses a file that says or holds something else than a snapshot does",
        arguments: [
            (
                "CREATE TRIGGER t AFTER INSERT ON teams BEGIN SELECT 1; END",
                SnapshotError.Kind.damaged
            ),
            ("CREATE VIEW v AS SELECT 1", .damaged),
            ("CREATE INDEX i ON players (team)", .damaged),
            ("CREATE VIRTUAL TABLE f USING fts5(x)", .damaged),
            ("CREATE TABLE martlet_outbox (x)", .damaged),
            ("CREATE TABLE other (id INTEGER PRIMARY KEY)", .damaged),
            ("DELETE FROM teams WHERE id = 3", .damaged),
            ("INSERT INTO teams VALUES (9, 'x')", .damaged),
            (
                "UPDATE teams SET id = -3 WHERE id = 3; UPDATE martlet_records SET id = -3 WHERE id = 3",
                .damaged
            ),
            ("UPDATE martlet_records SET revision = 13 WHERE id = 3", .damaged),
            ("UPDATE martlet_records SET revision = 'x' WHERE id = 3", .damaged),
            ("UPDATE teams SET name = 'Eagle' WHERE id = 3", .damaged),
            ("UPDATE martlet_records SET revision = 9 WHERE id = 3", .damaged),
            ("UPDATE martlet_snapshot SET value = 4 WHERE name = 'hash of teams'", .damaged),
            ("DELETE FROM martlet_records WHERE id = 'b'", .damaged),
            ("INSERT INTO martlet_records VALUES (5, 1, 1)", .damaged),
            ("UPDATE martlet_snapshot SET value = 4 WHERE name = 'records of teams'", .damaged),
            ("UPDATE martlet_snapshot SET value = 'x' WHERE name = 'revision'", .damaged),
            ("UPDATE martlet_snapshot SET value = 'x' WHERE name = 'schema'", .damaged),
            ("UPDATE martlet_snapshot SET value = '../x' WHERE name = 'parts'", .damaged),
            ("DELETE FROM martlet_snapshot WHERE name = 'lineage'", .damaged),
            ("INSERT INTO martlet_snapshot VALUES ('more', 1)", .damaged),
            ("DROP TABLE martlet_types", .damaged),
            ("UPDATE martlet_types SET name = 'x' WHERE number = 1", .damaged),
            ("UPDATE martlet_snapshot SET value = 2 WHERE name = 'format'", .newer),
            ("PRAGMA application_id = 7", .noSnapshot),
            ("UPDATE martlet_snapshot SET value = 'd2' WHERE name = 'dataSet'", .other),
        ])
    func hostile(spoil: String, kind: SnapshotError.Kind) throws {
        try withSnapshot(spoil) { path in
            #expect(refusal(path, dataSet: "d1") == kind)
        }
    }

    @Test("refuses a file cut anywhere, and one that is no database")
    func truncatedSnapshot() throws {
        try withSnapshot { path in
            let whole = try Data(contentsOf: URL(fileURLWithPath: path))
            for count in stride(from: 0, to: whole.count, by: 1_021) {
                try whole.prefix(count).write(to: URL(fileURLWithPath: path))
                #expect(refusal(path) != nil, "cut at \(count)")
            }
            try Data("something else entirely".utf8).write(to: URL(fileURLWithPath: path))
            #expect(refusal(path) == .damaged)
        }
    }
}
