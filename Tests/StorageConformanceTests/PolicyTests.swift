import MartletModel
internal import MartletProtocol
import MartletServerCore
import SetTexts
import Testing

@Suite("Policies judge every set")
struct PolicyTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, owner TEXT);
        CREATE TABLE members (
            id INTEGER PRIMARY KEY, person TEXT, team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT, fee INTEGER, secret TEXT,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        """

    private static let rules = """
        CREATE POLICY own ON teams USING (owner = martlet_user());
        CREATE POLICY mine ON teams FOR SELECT
            USING (id IN (SELECT team_id FROM members WHERE person = martlet_user()));
        CREATE POLICY self ON members FOR SELECT USING (person = martlet_user());
        CREATE POLICY invite ON members FOR INSERT
            WITH CHECK (team_id IN (SELECT id FROM teams));
        CREATE POLICY leave ON members FOR DELETE USING (person = martlet_user());
        CREATE POLICY teams ON players FOR SELECT
            USING (team_id IN (SELECT id FROM teams) AND secret IS NULL);
        CREATE POLICY change ON players FOR UPDATE USING (team_id IN (SELECT id FROM teams));
        CREATE POLICY add ON players FOR INSERT WITH CHECK (team_id IN (SELECT id FROM teams));
        CREATE POLICY small ON players AS RESTRICTIVE FOR UPDATE WITH CHECK (fee < 100);
        GRANT SELECT, INSERT, DELETE ON players TO PUBLIC;
        GRANT UPDATE (name, team_id, secret) ON players TO PUBLIC;
        GRANT UPDATE (fee) ON players TO treasurer;
        """

    private static let ann = Principal(name: "a", user: "ann")
    private static let bob = Principal(name: "b", user: "bob", roles: ["treasurer"])

    /// Team 1 of Ann with player 1; team 2 of Bob with player 2. Bob is a member of both, as member 1 and 2.
    private static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.send(
            SetText().create("teams", "-1", #""name":"A","owner":"ann""#)
                .create("players", "-1", #""name":"P","fee":5,"team_id":-1"#)
                .create("members", "-1", #""person":"bob","team_id":-1"#))
        try server.send(
            SetText().create("teams", "-2", #""name":"B","owner":"bob""#)
                .create("players", "-2", #""name":"Canary","fee":5,"team_id":-2"#)
                .create("members", "-2", #""person":"bob","team_id":-2"#))
        try server.secure(by: rules)
        return server
    }

    private static let tree = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, owner TEXT);
        CREATE TABLE nodes (
            id INTEGER PRIMARY KEY, parent INTEGER REFERENCES nodes (id) ON DELETE CASCADE,
            team_id INTEGER REFERENCES teams (id) ON DELETE SET NULL, name TEXT);
        """

    private static let treeRules = """
        CREATE POLICY own ON teams USING (owner = martlet_user());
        CREATE POLICY every ON nodes FOR SELECT USING (true);
        CREATE POLICY roots ON nodes FOR DELETE USING (name = 'root');
        """

    @Test(
        "the effects of ON DELETE actions need no right if a set names them, and nothing else passes with them",
        arguments: StorageKind.all)
    func namedActions(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.tree)
        try server.send(
            SetText().create("teams", "-1", #""name":"A","owner":"ann""#)
                .create("nodes", "-1", #""name":"root""#)
                .create("nodes", "-2", #""name":"child","parent":-1"#)
                .create("nodes", "-3", #""name":"grandchild","parent":-2,"team_id":-1"#)
                .create("nodes", "-4", #""name":"alone""#)
                .create("nodes", "-5", #""name":"one","parent":-4"#))
        // A loop of records does not explain itself.
        try server.send(SetText().update("nodes", "4", #""revision":1,"parent":5"#))
        try server.secure(by: Self.treeRules)
        for (index, set) in [
            SetText().delete("nodes", "2", #""revision":1"#),
            SetText().delete("nodes", "4", #""revision":2"#).delete("nodes", "5", #""revision":1"#),
            SetText().update("nodes", "3", #""revision":1,"team_id":null"#),
            SetText().delete("teams", "1", #""revision":1"#)
                .update("nodes", "3", #""revision":1,"team_id":null,"name":"x""#),
            SetText().delete("teams", "1", #""revision":1"#)
                .update("nodes", "2", #""revision":1,"team_id":null"#),
        ].enumerated() {
            let refused = try server.send(set, from: "d3", as: Self.ann)
            #expect(refused.reason == .permission, "set \(index): \(refused)")
        }
        let team = SetText().delete("teams", "1", #""revision":1"#)
            .update("nodes", "3", #""revision":1,"team_id":null"#)
        #expect(try server.send(team, from: "d3", as: Self.ann).revision == 3)
        let branch = SetText().delete("nodes", "3", #""revision":3"#)
            .delete("nodes", "2", #""revision":1"#).delete("nodes", "1", #""revision":1"#)
        #expect(try server.send(branch, from: "d3", as: Self.ann).revision == 4)
        #expect(try server.rows("SELECT count(*) FROM nodes") == "2")
    }

    @Test(
        "a record that a person may not see is one that does not exist", arguments: StorageKind.all)
    func hidden(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        for set in [
            SetText().update("players", "2", #""revision":2,"name":"X""#),
            SetText().delete("players", "2", #""revision":2"#),
            SetText().update("players", "77", #""revision":2,"name":"X""#),
        ] {
            let refused = try server.send(set, from: "d3", as: Self.ann)
            #expect(refused.reason == .stale)
            #expect(refused.message?.hasPrefix("a record of “players” the set would") == true)
            #expect(refused.message?.hasSuffix("does not exist") == true)
            #expect(
                refused["players"]?.delete.count == 1 && refused["players"]?.entries.isEmpty == true
            )
        }
        #expect(try server.rows("SELECT name FROM players WHERE id = 2") == "Canary")
    }

    @Test(
        "a change needs a policy for the row before and after, and the privilege",
        arguments: StorageKind.all)
    func changes(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        // The member sees the team, and does not own it.
        let other = try server.send(
            SetText().update("teams", "1", #""revision":1,"name":"X""#), from: "d2", as: Self.bob)
        #expect(other.reason == .permission)
        #expect(other.message == "no policy lets you update this record of “teams”")
        #expect(other["teams"]?.entries.first?.attributes["name"] == "A")
        let fee = try server.send(
            SetText().update("players", "1", #""revision":1,"name":"X","fee":9"#), from: "d3",
            as: Self.ann)
        #expect(fee.message == "you may not write “fee” of “players”")
        let much = try server.send(
            SetText().update("players", "1", #""revision":1,"fee":900"#), from: "d2", as: Self.bob)
        #expect(
            much.message
                == "the policy “small” does not let you leave a record of “players” like this")
        let away = try server.send(
            SetText().update("players", "1", #""revision":1,"team_id":2"#), from: "d3", as: Self.ann
        )
        #expect(away.message == "no policy lets you leave a record of “players” like this")
        // Whoever makes a row that he may not see afterwards is refused, if it is a change.
        let secret = try server.send(
            SetText().update("players", "1", #""revision":1,"secret":"s""#), from: "d3",
            as: Self.ann)
        #expect(secret.reason == .permission)
        let fine = try server.send(
            SetText().update("players", "1", #""revision":1,"fee":9"#), from: "d2", as: Self.bob)
        #expect(fine.revision == 3)
        #expect(
            try server.rows("SELECT name, fee, team_id, secret FROM players WHERE id = 1")
                == "P|9|1|-")
    }

    @Test(
        "a new row is judged beside the rows before it in its set, not by itself",
        arguments: StorageKind.all)
    func creates(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let whole = SetText().create("teams", "-5", #""name":"N","owner":"ann""#)
            .create("players", "-6", #""name":"Q","fee":1,"secret":"s","team_id":-5"#)
        #expect(try server.send(whole, from: "d3", as: Self.ann).revision == 3)
        // Her membership would make the team visible to her; it does not give itself the right.
        let joins = SetText().create("members", "-7", #""person":"ann","team_id":2"#)
        let refused = try server.send(joins, from: "d3", as: Self.ann)
        #expect(refused.message == "no policy lets you create a record of “members” like this")
        let both = SetText().create("members", "-8", #""person":"ann","team_id":2"#)
            .create("members", "-9", #""person":"ann","team_id":2"#)
        #expect(try server.send(both, from: "d3", as: Self.ann).reason == .permission)
        let invites = SetText().create("members", "-10", #""person":"ann","team_id":2"#)
        #expect(try server.send(invites, from: "d2", as: Self.bob).revision == 4)
        #expect(try server.rows("SELECT count(*) FROM members") == "3")
    }

    @Test("each set meets the rights that the one before it has left", arguments: StorageKind.all)
    func sequence(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let leaves = SetText().delete("members", "1", #""revision":1"#)
        let changes = SetText().update("players", "1", #""revision":1,"name":"X""#)
        let sets = try server.exchange([leaves, changes], from: "d2", as: Self.bob).changeSets
            .filter { !$0.isDifference }
        #expect(sets.map(\.fate) == ["accepted 3", "stale"])
        #expect(sets[1].message == "a record of “players” the set would update does not exist")
    }

    @Test("what a delete takes along needs no right, and is not told", arguments: StorageKind.all)
    func cascades(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.secure(by: nil)
        try server.send(SetText().update("players", "1", #""revision":1,"secret":"canary""#))
        try server.secure(by: Self.rules)
        // Bob may not delete the team. Its players are not all his to see.
        let refused = try server.send(
            SetText().delete("teams", "1", #""revision":1"#), from: "d2", as: Self.bob)
        #expect(refused.reason == .permission)
        #expect(refused["teams"]?.update == [.integer(1)] && refused["players"] == nil)
        // Ann has not seen the change of the player that is hidden from her.
        let fine = try server.send(
            SetText(seen: 2).delete("teams", "1", #""revision":1"#), from: "d3", as: Self.ann)
        #expect(fine.fate == "accepted 4")
        #expect(fine["players"] == nil)
        #expect(try server.rows("SELECT count(*) FROM players WHERE team_id = 1") == "0")
    }

    @Test(
        "a set whose rows are not allowed leaves nothing, and takes nothing of the sets around it",
        arguments: StorageKind.all)
    func around(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let fees = [("1", 1, 9), ("2", 2, 900), ("2", 2, 8)].map { id, revision, fee in
            SetText().update("players", id, "\"revision\":\(revision),\"fee\":\(fee)")
        }
        let sets = try server.exchange(fees, from: "d2", as: Self.bob).changeSets
            .filter { !$0.isDifference }
        #expect(sets.map(\.fate).sorted() == ["accepted 3", "accepted 4", "permission"])
        #expect(try server.rows("SELECT id, fee FROM players ORDER BY id") == "1|9\n2|8")
        #expect(try server.rows("SELECT revision FROM martlet_log ORDER BY 1") == "1\n2\n3\n4")
        try server.restart()
        #expect(server.node.head.revision == 4)
    }

    @Test("a set waits for a set before it that may yet give the right", arguments: StorageKind.all)
    func waits(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        // The first waits for a set that has not arrived.
        let joins = SetText("j", sequence: 1, after: "missing").create(
            "members", "-1", #""person":"ann","team_id":1"#)
        let change = SetText("c", sequence: 2).update("players", "2", #""revision":2,"name":"X""#)
        let sets = try server.exchange([joins, change], from: "d3", as: Self.ann).changeSets
            .filter { !$0.isDifference }
        #expect(sets.map(\.retryAfter) == [1, 1])
        #expect(sets.map(\.reason) == [.dependency, .dependency])
        #expect(sets.allSatisfy { $0.types.isEmpty })
    }
}
