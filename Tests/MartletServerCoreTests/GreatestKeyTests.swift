import MartletModel
import MartletProtocol
import SQLiteKit
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("The greatest keys")
struct GreatestKeyTests {
    private static let script = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"

    @Test(
        "a row with a greater key is left out, and nothing else is held up",
        arguments: [Int64.max, Int64.max - 1, Limits.greatestKey + 1])
    func greater(key: Int64) throws {
        let server = try TestServer(Self.script)
        try server.execute(
            "INSERT INTO teams VALUES (\(key), 'far'); INSERT INTO teams VALUES (5, 'near')")
        for round in 0..<2 {
            let set = try server.send(
                SetText("a\(round)", sequence: round + 1).create(
                    "teams", "-\(round + 1)", #""name":"new""#))
            #expect(set.fate.hasPrefix("accepted"))
            try server.restart()
        }
        #expect(
            try server.rows("SELECT id, name FROM teams WHERE id < 100 ORDER BY id")
                == "5|near\n6|new\n7|new")
        #expect(try server.rows("SELECT id FROM martlet_records ORDER BY id") == "5\n6\n7")
    }

    @Test(
        "a row of another program under a key that the server never gives takes none from new records",
        arguments: [Limits.greatestKey, EmbeddedStore.greatestFollowedKey + 1])
    func far(key: Int64) throws {
        let server = try TestServer(Self.script)
        try server.execute("INSERT INTO teams VALUES (\(key), 'far')")
        let answer = try server.exchange([
            SetText("a", sequence: 1).create("teams", "-1", #""name":"new""#),
            SetText("b", sequence: 2)
                .update("teams", "\(key)", #""revision":1,"name":"known""#),
        ])
        #expect(answer.changeSets.map(\.fate) == ["accepted 1", "accepted 2", "accepted 3"])
        try server.restart()
        try server.send(SetText("c", sequence: 3).create("teams", "-2", #""name":"n""#))
        #expect(
            try server.rows("SELECT id, name FROM teams ORDER BY id")
                == "1|new\n2|n\n\(key)|known")
    }

    @Test(
        "rows of another program about the greatest key that the counter follows leave keys for new records",
        arguments: [0..<1, -2..<1, 0..<2, 0..<7, -1..<40])
    func followed(run: Range<Int64>) throws {
        let server = try TestServer(Self.script)
        let keys = run.map { EmbeddedStore.greatestFollowedKey + $0 }
        try server.execute(
            "INSERT INTO teams VALUES " + keys.map { "(\($0), 'far')" }.joined(separator: ", "))
        // A key that a deleted record had is not given either.
        #expect(!server.node.takeExternalWrites(now: 5))
        try server.execute("DELETE FROM teams WHERE id = \(keys[keys.count - 1])")
        for number in 1...3 {
            let set = try server.send(
                SetText("a\(number)", sequence: number).create(
                    "teams", "-\(number)", #""name":"new""#))
            #expect(set.fate.hasPrefix("accepted"), "\(set.message ?? "")")
            try server.restart()
        }
        let new = try server.rows("SELECT id FROM teams WHERE name = 'new' ORDER BY id")
            .split(separator: "\n").compactMap { Int64($0) }
        #expect(new.count == 3 && new.allSatisfy { !keys.contains($0) })
        #expect(new.allSatisfy { $0 < Limits.greatestKey - 1_000_000 })
    }

    @Test("a counter behind the greatest key puts new records off, and all else goes on")
    func greatest() throws {
        let server = try TestServer(Self.script)
        try server.execute(
            """
            INSERT INTO teams VALUES (5, 'near');
            UPDATE martlet_types SET next_id = \(Limits.greatestKey + 1)
            """)
        try server.restart()
        let new = SetText("a", sequence: 1).create("teams", "-1", #""name":"new""#)
        let answer = try server.exchange([
            new, SetText("b", sequence: 2).update("teams", "5", #""revision":1,"name":"known""#),
        ])
        #expect(answer.changeSets.map(\.fate) == ["accepted 1", "accepted 2", "busy"])
        #expect(answer.changeSets[2].retryAfter == 60)
        #expect(answer.changeSets[2].message?.contains("“teams”") == true)
        try server.execute("UPDATE martlet_types SET next_id = 6")
        #expect(try server.send(new).fate == "accepted 3")
        #expect(try server.rows("SELECT id FROM teams ORDER BY id") == "5\n6")
    }

    @Test("one that a trigger gives a record ends nothing, and keys go on below it")
    func triggered() throws {
        let server = try TestServer(
            Self.script + """
                CREATE TABLE marks (id INTEGER PRIMARY KEY, name TEXT);
                CREATE TRIGGER far AFTER INSERT ON teams BEGIN
                    INSERT OR IGNORE INTO marks VALUES (\(Int64.max), 'far');
                END;
                """)
        for number in 1...2 {
            let set = try server.send(
                SetText("a\(number)", sequence: number).create("teams", "-\(number)")
                    .create("marks", "-\(number)"))
            #expect(set.fate == "accepted \(number)")
            try server.restart()
        }
        #expect(
            try server.rows("SELECT id FROM marks ORDER BY id") == "1\n2\n\(Int64.max)")
    }

    @Test("a table whose AUTOINCREMENT is at its end puts off the sets that need it, no others")
    func atItsEnd() throws {
        let server = try TestServer(
            Self.script + """
                CREATE TABLE deeds (id INTEGER PRIMARY KEY AUTOINCREMENT, team INTEGER);
                CREATE TRIGGER deed AFTER DELETE ON teams
                    BEGIN INSERT INTO deeds (team) VALUES (OLD.id); END;
                """)
        try server.send(SetText("a", sequence: 1).create("teams", "-1", #""name":"n""#))
        try server.execute("INSERT INTO deeds VALUES (\(Int64.max), 9)")
        let gone = SetText("b", sequence: 2).delete("teams", "1")
        let answer = try server.exchange([
            gone, SetText("c", sequence: 3).create("teams", "-2", #""name":"m""#),
        ])
        #expect(answer.changeSets.map(\.fate) == ["accepted 2", "busy"])
        #expect(answer.changeSets[1].retryAfter == 60)
        #expect(answer.changeSets[1].message?.contains("“deeds”") == true)
        try server.execute(
            "DELETE FROM deeds; DELETE FROM sqlite_sequence WHERE name = 'deeds'")
        #expect(try server.send(gone).fate == "accepted 3")
    }

    @Test("a table with such a row is not taken over until it is renumbered")
    func adopted() throws {
        #expect(throws: (any Error).self) {
            _ = try TestServer(Self.script) {
                try $0.execute(Self.script + "INSERT INTO teams VALUES (\(Int64.max), 'far')")
            }
        }
        let server = try TestServer(Self.script) {
            try $0.execute(
                Self.script + "INSERT INTO teams VALUES (\(Limits.greatestKey), 'far')")
        }
        #expect(try server.rows("SELECT count(*) FROM martlet_records") == "1")
    }
}
