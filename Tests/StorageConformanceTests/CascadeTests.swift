import MartletModel
internal import MartletProtocol
import SetTexts
import Testing
import TextComparison

@testable import MartletServerCore

@Suite("Deletes that reach further")
struct CascadeTests {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE,
            former_id INTEGER REFERENCES teams (id) ON DELETE SET NULL);
        CREATE TABLE shoes (
            id INTEGER PRIMARY KEY, size INTEGER,
            player_id INTEGER REFERENCES players (id) ON DELETE CASCADE);
        CREATE TABLE trophies (
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams (id) ON DELETE RESTRICT);
        """

    /// Team 1 with player 1, who has shoes 1; team 2. All by d1, revisions 1 and 2.
    static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.send(
            SetText().create("teams", "-1", #""name":"A""#)
                .create("players", "-1", #""name":"P","team_id":-1"#)
                .create("shoes", "-1", #""size":40,"player_id":-1"#))
        try server.send(SetText().create("teams", "-2", #""name":"B""#))
        return server
    }

    @Test(
        "all rows an accepted delete took along are listed, and are deleted records",
        arguments: StorageKind.all)
    func listed(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let set = try server.send(SetText().delete("teams", "1"), from: "d2")
        #expect(set.content == "teams delete [1]; players delete [1]; shoes delete [1]")
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
            log 3, by d2: teams delete [1]
            log 3, by d2: players delete [1]
            log 3, by d2: shoes delete [1]
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            shoes -1 of d1 is 1
            device d1
            device d2
            """)
    }

    @Test(
        "a child another device added unseen refuses the delete; the truth includes it",
        arguments: StorageKind.all)
    func unseenChild(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().create("players", "-7", #""name":"Q","team_id":1"#), from: "d2")
        let set = try server.send(SetText(seen: 2).delete("teams", "1"), from: "d1")
        #expect(set.fate == "stale")
        #expect(
            set.content == """
                teams update [1] 1@1(name=A); players update [1, 2] 1@1(name=P team_id=1) \
                2@3(name=Q team_id=1); shoes update [1] 1@1(size=40 player_id=1)
                """)
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            teams 2 @2 by d1: name B
            players 1 @1 by d1: name P, team_id 1
            players 2 @3 by d2: name Q, team_id 1
            shoes 1 @1 by d1: size 40, player_id 1
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(name=P team_id=1)
            log 1, by d1: shoes create [1] 1@1(size=40 player_id=1)
            log 2, by d1: teams create [2] 2@2(name=B)
            log 3, by d2: players create [2] 2@3(name=Q team_id=1)
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            shoes -1 of d1 is 1
            players -7 of d2 is 2
            device d1
            device d2
            """)
        #expect(try server.send(SetText(seen: 3).delete("teams", "1")).fate == "accepted 4")
    }

    @Test("an unseen change of a grandchild counts too", arguments: StorageKind.all)
    func unseenGrandchild(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().update("shoes", "1", #""revision":1,"size":41"#), from: "d2")
        #expect(try server.send(SetText(seen: 2).delete("teams", "1")).fate == "stale")
    }

    @Test("an own child added after what was seen is no conflict", arguments: StorageKind.all)
    func ownChild(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().create("players", "-7", #""team_id":1"#), from: "d1")
        #expect(try server.send(SetText(seen: 2).delete("teams", "1")).fate == "accepted 4")
        expectText(
            try server.text(),
            """
            teams 2 @2 by d1: name B
            players 1 @4 by d1, deleted
            players 2 @4 by d1, deleted
            shoes 1 @4 by d1, deleted
            teams 1 @4 by d1, deleted
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(name=P team_id=1)
            log 1, by d1: shoes create [1] 1@1(size=40 player_id=1)
            log 2, by d1: teams create [2] 2@2(name=B)
            log 3, by d1: players create [2] 2@3(team_id=1)
            log 4, by d1: teams delete [1]
            log 4, by d1: players delete [1, 2]
            log 4, by d1: shoes delete [1]
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            players -7 of d1 is 2
            shoes -1 of d1 is 1
            device d1
            """)
    }

    @Test(
        "SET NULL is a change of the child: listed when seen, a conflict when not",
        arguments: StorageKind.all)
    func setNull(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().create("players", "-7", #""name":"Q","former_id":2"#), from: "d2")
        #expect(try server.send(SetText(seen: 2).delete("teams", "2")).fate == "stale")
        let set = try server.send(SetText(seen: 3).delete("teams", "2"))
        #expect(set.content == "teams delete [2]; players update [2] 2@4(former_id=null)")
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            players 1 @1 by d1: name P, team_id 1
            players 2 @4 by d1, by others @3: name Q
            shoes 1 @1 by d1: size 40, player_id 1
            teams 2 @4 by d1, deleted
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(name=P team_id=1)
            log 1, by d1: shoes create [1] 1@1(size=40 player_id=1)
            log 2, by d1: teams create [2] 2@2(name=B)
            log 3, by d2: players create [2] 2@3(name=Q former_id=2)
            log 4, by d1: teams delete [2]
            log 4, by d1: players update [2] 2@4(former_id=null)
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            shoes -1 of d1 is 1
            players -7 of d2 is 2
            device d1
            device d2
            """)
    }

    @Test(
        "a child the set moves away is neither deleted nor listed twice", arguments: StorageKind.all
    )
    func movedAway(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let set = try server.send(
            SetText().update("players", "1", #""revision":1,"team_id":2"#).delete("teams", "1"))
        #expect(set.content == "players update [1] 1@3(team_id=2); teams delete [1]")
        expectText(
            try server.text(),
            """
            teams 2 @2 by d1: name B
            players 1 @3 by d1: name P, team_id 2
            shoes 1 @1 by d1: size 40, player_id 1
            teams 1 @3 by d1, deleted
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(name=P team_id=1)
            log 1, by d1: shoes create [1] 1@1(size=40 player_id=1)
            log 2, by d1: teams create [2] 2@2(name=B)
            log 3, by d1: players update [1] 1@3(team_id=2)
            log 3, by d1: teams delete [1]
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            shoes -1 of d1 is 1
            device d1
            """)
    }

    @Test(
        "a record moved under a deleted one goes with it, and so do its unseen children",
        arguments: StorageKind.all)
    func movedUnder(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().create("shoes", "-7", #""size":39,"player_id":1"#), from: "d2")
        let move = SetText(seen: 2).update("players", "1", #""revision":1,"team_id":2"#)
            .delete("teams", "2")
        #expect(try server.send(move).fate == "stale")
        let informed = SetText(seen: 3).update("players", "1", #""revision":1,"team_id":2"#)
            .delete("teams", "2")
        let set = try server.send(informed)
        #expect(set.content == "players delete [1]; teams delete [2]; shoes delete [1, 2]")
    }

    @Test(
        "an attribute that SET NULL empties is listed on a record the set updates",
        arguments: StorageKind.all)
    func updatedAndEmptied(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().update("players", "1", #""revision":1,"former_id":2"#))
        let set = try server.send(
            SetText().update("players", "1", #""revision":3,"name":"Z""#).delete("teams", "2"))
        #expect(
            set.content == "players update [1] 1@4(name=Z former_id=null); teams delete [2]")
    }

    @Test(
        "a parent with children under RESTRICT stays, with the reference named",
        arguments: StorageKind.all)
    func restricted(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().create("trophies", "-1", #""team_id":2"#))
        let set = try server.send(SetText().delete("teams", "2"))
        #expect(set.fate == "constraint")
        #expect(set.message?.contains("“trophies.team_id”") == true)
        let both = try server.send(SetText().delete("teams", "2").delete("trophies", "1"))
        #expect(both.content == "teams delete [2]; trophies delete [1]")
    }

    @Test(
        "a record the set creates under what it deletes makes the set invalid",
        arguments: StorageKind.all)
    func createdUnderDeleted(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let set = try server.send(
            SetText().create("players", "-9", #""team_id":2"#).delete("teams", "2"))
        #expect(set.fate == "invalid")
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            teams 2 @2 by d1: name B
            players 1 @1 by d1: name P, team_id 1
            shoes 1 @1 by d1: size 40, player_id 1
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(name=P team_id=1)
            log 1, by d1: shoes create [1] 1@1(size=40 player_id=1)
            log 2, by d1: teams create [2] 2@2(name=B)
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            shoes -1 of d1 is 1
            device d1
            """)
    }

    @Test("deleting parent and child together lists each once", arguments: StorageKind.all)
    func together(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let set = try server.send(
            SetText().delete("teams", "1").delete("players", "1").delete("shoes", "1"))
        #expect(set.content == "teams delete [1]; players delete [1]; shoes delete [1]")
    }

    @Test("what a delete does to others takes the right to do it", arguments: StorageKind.all)
    func rightsOfCascade(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        func allow(players: Operations, shoes: Operations = .all) {
            server.rules = Rules(
                fallback: Rules.Grant(types: ["players": players, "shoes": shoes]))
        }
        allow(players: [.create, .update])
        let refused = try server.send(SetText().delete("teams", "1"), from: "d2")
        #expect(refused.fate == "permission")
        #expect(refused.message?.contains("“players”, which you may not delete") == true)
        #expect(refused.content.hasPrefix("teams update [1]"))
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            teams 2 @2 by d1: name B
            players 1 @1 by d1: name P, team_id 1
            shoes 1 @1 by d1: size 40, player_id 1
            log 1, by d1: teams create [1] 1@1(name=A)
            log 1, by d1: players create [1] 1@1(name=P team_id=1)
            log 1, by d1: shoes create [1] 1@1(size=40 player_id=1)
            log 2, by d1: teams create [2] 2@2(name=B)
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            players -1 of d1 is 1
            shoes -1 of d1 is 1
            device d1
            device d2
            """)
        // This includes records that are reached over others.
        allow(players: .all, shoes: [.create, .update])
        #expect(try server.send(SetText().delete("teams", "1"), from: "d2").fate == "permission")
        // SET NULL is an update.
        allow(players: .all)
        try server.send(SetText().update("players", "1", #""revision":1,"former_id":2"#))
        allow(players: [.create, .delete])
        let unset = try server.send(SetText().delete("teams", "2"), from: "d2")
        #expect(unset.fate == "permission")
        #expect(unset.message?.contains("“players”, which you may not update") == true)
        allow(players: [.update, .delete])
        #expect(try server.send(SetText().delete("teams", "2"), from: "d2").fate == "accepted 4")
        #expect(try server.send(SetText().delete("teams", "1"), from: "d2").fate == "accepted 5")
    }
}
