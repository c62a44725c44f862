import MartletModel
internal import MartletProtocol
import SetTexts
import Testing
import TextComparison

@testable import MartletServerCore

@Suite("Sets that are rare")
struct RareSetTests {
    @Test(
        "required unique values of every kind can be swapped in one set", arguments: StorageKind.all
    )
    func swapKinds(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE seats (
                id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE, weight REAL NOT NULL UNIQUE,
                price NUMERIC NOT NULL UNIQUE);
            """)
        try server.send(
            SetText().create("seats", "-1", #""label":"A","weight":0.5,"price":"1""#)
                .create("seats", "-2", #""label":"B","weight":2.5,"price":"2""#))
        let set = try server.send(
            SetText()
                .update("seats", "1", #""revision":1,"label":"B","weight":2.5,"price":"2""#)
                .update("seats", "2", #""revision":1,"label":"A","weight":0.5,"price":"1""#))
        #expect(
            set.content == """
                seats update [1, 2] 1@2(label=B weight=2.5 price=2) 2@2(label=A weight=0.5 price=1)
                """)
        expectText(
            try server.text(),
            """
            seats 1 @2 by d1: label B, weight 2.5, price 2
            seats 2 @2 by d1: label A, weight 0.5, price 1
            log 1, by d1: seats create [1, 2] 1@1(label=A weight=0.5 price=1) 2@1(label=B weight=2.5 price=2)
            log 2, by d1: seats update [1, 2] 1@2(label=B weight=2.5 price=2) 2@2(label=A weight=0.5 price=1)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            device d1
            """)
    }

    @Test(
        "required unique flags are swapped where the database has a third value to spare",
        arguments: StorageKind.all)
    func swapFlags(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind, "CREATE TABLE lamps (id INTEGER PRIMARY KEY, lit BOOLEAN NOT NULL UNIQUE);")
        // PostgreSQL has none for a boolean.
        server.isCompared = false
        try server.send(
            SetText().create("lamps", "-1", #""lit":true"#).create(
                "lamps", "-2", #""lit":false"#))
        let set = try server.send(
            SetText().update("lamps", "1", #""revision":1,"lit":false"#)
                .update("lamps", "2", #""revision":1,"lit":true"#))
        #expect(set.fate == (kind.isPostgres ? "constraint" : "accepted 2"))
        #expect(
            try server.rows("SELECT id, lit FROM lamps ORDER BY id")
                == (kind.isPostgres ? "1|1\n2|0" : "1|0\n2|1"))
    }

    @Test("an update of nothing is one all the same", arguments: StorageKind.all)
    func emptyUpdate(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, RandomSets.schema)
        try server.send(SetText().create("teams", "-1", #""name":"A""#))
        let set = try server.send(SetText().update("teams", "1", #""revision":1"#))
        #expect(set.content == "teams update [1] 1@2()")
        let stale = try server.send(
            SetText().update("teams", "1", #""revision":1,"name":"B""#), from: "d2")
        #expect(stale.fate == "stale")
    }

    @Test(
        "records moved under a record that the set deletes go with it", arguments: StorageKind.all)
    func movedUnderDeleted(kind: StorageKind) async throws {
        let server = try await CascadeTests.server(kind)
        try server.send(
            SetText().create("players", "-5", #""name":"Q","team_id":2"#)
                .create("players", "-6", #""name":"R","team_id":2"#))
        let set = try server.send(
            SetText().update("players", "2", #""revision":3,"team_id":1"#)
                .update("players", "3", #""revision":3,"team_id":1"#)
                .delete("teams", "1", #""revision":1"#))
        #expect(set.fate == "accepted 4")
        #expect(
            set["players"]?.delete.sorted() == [.integer(1), .integer(2), .integer(3)])
        expectText(
            try server.text(),
            """
            teams 2 @2 by d1: name B
            players 1 @4 by d1, deleted
            players 2 @4 by d1, deleted
            players 3 @4 by d1, deleted
            shoes 1 @4 by d1, deleted
            teams 1 @4 by d1, deleted
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(name=P team_id=1)
            log 1, by d1: shoes create [1] 1@1(size=40 player_id=1)
            log 2, by d1: teams create [2] 2@2(name=B)
            log 3, by d1: players create [2, 3] 2@3(name=Q team_id=2) 3@3(name=R team_id=2)
            log 4, by d1: players delete [2, 3, 1]
            log 4, by d1: teams delete [1]
            log 4, by d1: shoes delete [1]
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            players -5 of d1 is 2
            players -6 of d1 is 3
            shoes -1 of d1 is 1
            device d1
            """)
    }

    private static let circle = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, captain INTEGER REFERENCES players (id));
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, team INTEGER REFERENCES teams (id), shirt INTEGER);
        CREATE TABLE guests (
            id INTEGER PRIMARY KEY, team INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        """
    private static let postgresCircle = """
        CREATE TABLE teams (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, captain bigint);
        CREATE TABLE players (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            team bigint REFERENCES teams (id), shirt bigint);
        ALTER TABLE teams ADD FOREIGN KEY (captain) REFERENCES players (id)
            DEFERRABLE INITIALLY DEFERRED;
        CREATE TABLE guests (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            team bigint REFERENCES teams (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
        """

    @Test(
        "types that refer to each other come and go together, whatever the order",
        arguments: StorageKind.all)
    func circles(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.circle, postgres: Self.postgresCircle)
        let made = try server.send(
            SetText().create("teams", "-1", #""captain":-1"#)
                .create("players", "-1", #""team":-1,"shirt":7"#)
                .create("guests", "-1", #""team":-1"#))
        #expect(made.fate == "accepted 1")
        let freed = try server.send(
            SetText().update("players", "1", #""revision":1,"team":null"#)
                .update("teams", "1", #""revision":1,"captain":null"#))
        #expect(freed.fate == "accepted 2")
        let gone = try server.send(
            SetText().delete("teams", "1", #""revision":2"#)
                .delete("players", "1", #""revision":2"#))
        #expect(gone.fate == "accepted 3")
        #expect(gone["guests"]?.delete == [.integer(1)])
        expectText(
            try server.text(),
            """
            guests 1 @3 by d1, deleted
            players 1 @3 by d1, deleted
            teams 1 @3 by d1, deleted
            log 1, by d1: teams create [1] 1@1(captain=1)
            log 1, by d1: players create [1] 1@1(team=1 shirt=7)
            log 1, by d1: guests create [1] 1@1(team=1)
            log 2, by d1: players update [1] 1@2(team=null)
            log 2, by d1: teams update [1] 1@2(captain=null)
            log 3, by d1: teams delete [1]
            log 3, by d1: players delete [1]
            log 3, by d1: guests delete [1]
            teams -1 of d1 is 1
            players -1 of d1 is 1
            guests -1 of d1 is 1
            device d1
            """)
    }

    @Test("deletions go on through text keys", arguments: StorageKind.all)
    func textKeysInDeletions(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE clubs (id TEXT PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE members (
                id INTEGER PRIMARY KEY, club TEXT REFERENCES clubs (id) ON DELETE CASCADE);
            """)
        try server.send(
            SetText().create("clubs", "c", #""name":"C""#).create("clubs", "d")
                .create("members", "-1", #""club":"c""#).create("members", "-2", #""club":"d""#))
        let set = try server.send(SetText().delete("clubs", "c", #""revision":1"#))
        #expect(set.content == "clubs delete [c]; members delete [1]")
        expectText(
            try server.text(),
            """
            clubs d @1 by d1
            members 2 @1 by d1: club d
            clubs c @2 by d1, deleted
            members 1 @2 by d1, deleted
            log 1, by d1: clubs create [c, d] c@1(name=C) d@1()
            log 1, by d1: members create [1, 2] 1@1(club=c) 2@1(club=d)
            log 2, by d1: clubs delete [c]
            log 2, by d1: members delete [1]
            members -1 of d1 is 1
            members -2 of d1 is 2
            device d1
            """)
    }

    @Test("a set that cannot be read stands in no deletion's way", arguments: StorageKind.all)
    func besideUnreadable(kind: StorageKind) async throws {
        let server = try await CascadeTests.server(kind)
        let answer = try server.exchange(
            [
                SetText("a", sequence: 7).create("nothing", "-1"),
                SetText("b", sequence: 8).delete("teams", "1"),
            ], from: "d2")
        #expect(answer.changeSets.map(\.fate) == ["accepted 3", "unknownType"])
        expectText(
            try server.text(),
            """
            teams 2 @2 by d1: name B
            players 1 @3 by d2, by others @1, deleted
            shoes 1 @3 by d2, by others @1, deleted
            teams 1 @3 by d2, by others @1, deleted
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(name=P team_id=1)
            log 1, by d1: shoes create [1] 1@1(size=40 player_id=1)
            log 2, by d1: teams create [2] 2@2(name=B)
            log 3, b/8 by d2: teams delete [1]
            log 3, b/8 by d2: players delete [1]
            log 3, b/8 by d2: shoes delete [1]
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            shoes -1 of d1 is 1
            refused, a/7 by d2: unknownType
            device d1
            device d2
            """)
    }

    @Test(
        "a record that a deletion would take along and that others hold on to refuses it",
        arguments: StorageKind.all)
    func heldBelow(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE players (
                id INTEGER PRIMARY KEY, team INTEGER REFERENCES teams (id) ON DELETE CASCADE);
            CREATE TABLE trophies (
                id INTEGER PRIMARY KEY, player INTEGER REFERENCES players (id) ON DELETE RESTRICT);
            """)
        // Only PostgreSQL names the table.
        server.isCompared = false
        try server.send(
            SetText().create("teams", "-1", #""name":"A""#)
                .create("players", "-1", #""team":-1"#).create("trophies", "-1", #""player":-1"#))
        let set = try server.send(SetText().delete("teams", "1"))
        #expect(set.fate == "constraint")
        if kind.isPostgres {
            #expect(
                set.message == """
                    a record of “players” cannot be deleted: records still refer to it in \
                    “trophies.player”
                    """)
        }
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            players 1 @1 by d1: team 1
            trophies 1 @1 by d1: player 1
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(team=1)
            log 1, by d1: trophies create [1] 1@1(player=1)
            teams -1 of d1 is 1
            players -1 of d1 is 1
            trophies -1 of d1 is 1
            device d1
            """)
    }

    @Test(
        "a set that deletes what others hold on to is told so, whatever else it refers to",
        arguments: StorageKind.all)
    func heldBeside(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE players (id INTEGER PRIMARY KEY, team INTEGER REFERENCES teams (id));
            """)
        try server.send(
            SetText().create("teams", "-1", #""name":"A""#).create("teams", "-2", #""name":"B""#)
                .create("players", "-1", #""team":-1"#))
        let set = try server.send(
            SetText().create("players", "-5", #""team":2"#).delete("teams", "1"))
        #expect(set.fate == "constraint")
        #expect(
            set.message == """
                a record of “teams” cannot be deleted: records still refer to it in “players.team”
                """)
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            teams 2 @1 by d1: name B
            players 1 @1 by d1: team 1
            log 1, by d1: teams create [1, 2] 1@1(name=A) 2@1(name=B)
            log 1, by d1: players create [1] 1@1(team=1)
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            device d1
            """)
    }

    @Test(
        "a type whose name holds NUL is refused, and the refusal kept", arguments: StorageKind.all)
    func nul(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, RandomSets.schema)
        // PostgreSQL keeps the sentence without it.
        server.isCompared = false
        let set = SetText("n", sequence: 1).create("te\\u0000ams", "-1")
        #expect(try server.send(set).fate == "unknownType")
        let again = try server.send(set)
        #expect(again.fate == "unknownType")
        let word = try #require(again.message)
        #expect(word.contains("te") && word.contains("ams"))
        let next = SetText("m", sequence: 2).create("teams", "-1", #""name":"A""#)
        #expect(try server.send(next).fate == "accepted 1")
    }
}
