import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests how one large external write is cut into sets.
@Suite("Cutting what others wrote")
struct ExternalCutTests {
    private static let script = """
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, name TEXT, team_id INTEGER REFERENCES teams(id));
        CREATE TABLE teams(
            id INTEGER PRIMARY KEY, name TEXT, code INTEGER UNIQUE,
            captain INTEGER REFERENCES players(id));
        """

    /// Returns the first set that a server which has taken the earlier ones would refuse.
    private static func fault(in sets: [ChangeSet], existing: Set<RecordID> = []) -> String? {
        var there = existing
        for (number, set) in sets.enumerated() {
            let created = Set(set.types.flatMap(\.create))
            for type in set.types {
                for entry in type.entries {
                    for name in ["team_id", "captain"] {
                        guard let id = entry.attributes[name].flatMap({ RecordID($0) }) else {
                            continue
                        }
                        guard there.contains(id) || created.contains(id) else {
                            return "set \(number) refers to \(id), which comes later"
                        }
                    }
                }
            }
            there.formUnion(created)
        }
        return nil
    }

    @Test("a note of many bytes is cut, also where its records are few")
    func bytesCutNote() throws {
        let device = try DeviceFixture(script: Self.script)
        try device.shell(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
            INSERT INTO teams(id, name) SELECT -1 - i, printf('%.*c', 1000000, 'x') FROM n
            """)
        try device.write { try $0.insert("teams", ["name": "mine"]) }
        #expect(
            try device.rows(
                """
                SELECT count(*), sum(records), max(bytes) <= \(Limits.uploadBytes)
                FROM martlet_outbox
                """) == [[5, 31, 1]])
    }

    @Test("a record that is too large alone is withheld; it goes out once it is smaller")
    func tooLargeRecord() throws {
        let device = try DeviceFixture(script: Self.script)
        try device.shell(
            """
            INSERT INTO teams(id, name) VALUES (-2, printf('%.*c', 16500000, 'x'));
            INSERT INTO players(id, team_id) VALUES (-2, -2);
            INSERT INTO players(id, name) VALUES (-3, 'free');
            """)
        #expect(try device.gather().changeSets.count == 1)
        let withheld = try device.store.withheld()
        #expect(withheld.map(\.type).sorted() == ["players", "teams"])
        #expect(withheld.contains { $0.message.contains("KiB") })
        try device.shell("UPDATE teams SET name = 'short' WHERE id = -2")
        #expect(try device.gather().changeSets.count == 2)
        #expect(try device.store.withheld().isEmpty)
    }

    @Test("parents go before children, whatever order they were written in")
    func referencesOrderRecords() throws {
        let device = try DeviceFixture(script: Self.script)
        try device.shell(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7000)
            INSERT INTO players(id, name, team_id) SELECT -1 - i, 'p', -10000 - i % 7 FROM n;
            WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 6)
            INSERT INTO teams(id, captain) SELECT -10000 - i, CASE i WHEN 3 THEN -6990 END FROM n;
            """)
        let sets = try device.gather().changeSets
        #expect(sets.count > 1)
        #expect(Self.fault(in: sets) == nil)
        // A team and its captain need each other.
        #expect(
            sets.contains { set in
                let created = set.types.flatMap(\.create)
                return created.contains(.integer(-10_003)) && created.contains(.integer(-6_990))
            })
    }

    @Test("values that change places go together, and children are let go before their parents go")
    func exchanges() throws {
        let device = try DeviceFixture(script: Self.script)
        let count: Int64 = 9_000
        var teams = TypeChanges(name: "teams")
        for id in 1...count {
            teams.create.append(.integer(id))
            teams.entries.append(
                RecordEntry(
                    id: .integer(id), revision: 1, attributes: ["code": .integer(id)]))
        }
        var players = TypeChanges(name: "players")
        for id in 1...Int64(3) {
            players.create.append(.integer(id))
            players.entries.append(
                RecordEntry(
                    id: .integer(id), revision: 1, attributes: ["team_id": 5]))
        }
        try device.apply([.entry(1, teams, players)], reaching: 1)
        // The first record takes the last one's code, the last takes the first one's, and so on.
        try device.shell(
            """
            BEGIN;
            DELETE FROM teams WHERE id = 5;
            UPDATE teams SET code = -code;
            UPDATE teams SET code = 9001 + code WHERE id <> 5;
            UPDATE players SET team_id = 6;
            COMMIT
            """)
        let sets = try device.gather().changeSets
        #expect(sets.count > 1)
        var setOf: [RecordID: Int] = [:]
        for (number, set) in sets.enumerated() {
            for type in set.types where type.name == "teams" {
                for id in type.update + type.delete { setOf[id] = number }
            }
        }
        for id in 6...count - 5 where id != 9_001 - id {
            #expect(setOf[.integer(id)] == setOf[.integer(9_001 - id)])
        }
        let gone = try #require(setOf[.integer(5)])
        let moved = try #require(sets.firstIndex { $0.types.contains { $0.name == "players" } })
        #expect(moved <= gone)
        // The record that takes the deleted record's code comes after it.
        #expect(try #require(setOf[.integer(8_996)]) >= gone)
    }
}
