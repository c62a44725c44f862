import MartletModel
internal import MartletProtocol
import MartletServerCore
import SetTexts
import Testing

@Suite("The rows of a refusal follow ON DELETE actions only through records that the sender sees")
struct HiddenPathTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE, name TEXT);
        CREATE TABLE notes (
            id INTEGER PRIMARY KEY, player_id INTEGER REFERENCES players (id) ON DELETE SET NULL,
            author TEXT);
        CREATE TABLE nodes (
            id INTEGER PRIMARY KEY, parent INTEGER REFERENCES nodes (id) ON DELETE CASCADE, name TEXT);
        """

    private static let rules = """
        CREATE POLICY open ON teams FOR SELECT USING (name = 'open');
        CREATE POLICY open ON players FOR SELECT USING (name = 'open');
        CREATE POLICY own ON notes USING (author = martlet_user());
        CREATE POLICY open ON nodes FOR SELECT USING (name = 'open');
        """

    private static let ann = Principal(name: "a", user: "ann")

    /// Ann sees team 3, player 3 of it, and a note on each player. Player 1 is in team 2, and player 2 in
    /// team 3. Of the nodes she does not see 2, which is between 1 and 3.
    private static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.send(
            SetText().create("teams", "-1", #""name":"hidden""#)
                .create("teams", "-2", #""name":"hidden""#)
                .create("teams", "-3", #""name":"open""#)
                .create("players", "-1", #""name":"hidden","team_id":-2"#)
                .create("players", "-2", #""name":"hidden","team_id":-3"#)
                .create("players", "-3", #""name":"open","team_id":-3"#)
                .create("notes", "-1", #""author":"ann","player_id":-1"#)
                .create("notes", "-2", #""author":"ann","player_id":-2"#)
                .create("notes", "-3", #""author":"ann","player_id":-3"#)
                .create("nodes", "-1", #""name":"open""#)
                .create("nodes", "-2", #""name":"hidden","parent":-1"#)
                .create("nodes", "-3", #""name":"open","parent":-2"#)
                .create("nodes", "-4", #""name":"open","parent":-1"#)
                .create("nodes", "-5", #""name":"open","parent":-4"#))
        try server.secure(by: rules)
        return server
    }

    /// The rows of the refusal of a delete, as “type update ids delete ids”.
    private static func rows(
        deleting id: Int, of type: String, from server: TestDataSet
    ) throws -> (reason: RefusalReason?, rows: [String]) {
        let refused = try server.send(
            SetText().delete(type, "\(id)", #""revision":1"#), from: "d3", as: ann)
        #expect(refused.conflict == true)
        let rows = refused.types.map { changes in
            let (update, delete) = (changes.update.sorted(), changes.delete.sorted())
            return "\(changes.name) \(update) \(delete)".replacing("\(id)", with: "ID")
        }
        return (refused.reason, rows)
    }

    @Test("a hidden record is refused as one that does not exist", arguments: StorageKind.all)
    func hidden(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        for (type, id) in [("teams", 1), ("teams", 2), ("players", 1), ("nodes", 2)] {
            let guess = try Self.rows(deleting: id, of: type, from: server)
            let never = try Self.rows(deleting: 77, of: type, from: server)
            #expect(guess.reason == .stale && never.reason == .stale)
            #expect(guess.rows == never.rows && guess.rows.count == 1, "\(type) \(id)")
        }
    }

    @Test("a hidden record hides those behind it", arguments: StorageKind.all)
    func seen(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        for (set, wanted) in [
            (
                SetText().delete("teams", "3", #""revision":1"#),
                ["teams 3", "players 3", "notes 3"]
            ),
            (SetText().delete("nodes", "1", #""revision":1"#), ["nodes 1 4 5"]),
            // A hidden record that the set names, too, leads nowhere.
            (
                SetText().delete("nodes", "1", #""revision":1"#)
                    .delete("nodes", "2", #""revision":1"#), ["nodes 1 4 5"]
            ),
        ] {
            let refused = try server.send(set, from: "d3", as: Self.ann)
            let rows = refused.types.map { changes in
                ([changes.name] + changes.update.sorted().map(\.description))
                    .joined(separator: " ")
            }
            #expect(rows == wanted, "\(set)")
        }
        #expect(try server.rows("SELECT count(*) FROM notes WHERE player_id IS NOT NULL") == "3")
    }

    @Test(
        "hidden records take no room, so their size is not told either",
        arguments: StorageKind.all)
    func room(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        var (set, guess) = (SetText(), SetText("g", sequence: 1, seen: 1))
        let name = String(repeating: "x", count: 100_000)
        for number in 1...100 {
            set = set.create("teams", "-\(number)", #""name":"\#(name)""#)
            guess = guess.delete("teams", "\(number)", #""revision":1"#)
        }
        try server.send(set)
        try server.secure(by: Self.rules)
        let refused = try server.send(guess, from: "d3", as: Self.ann)
        #expect(refused.reason == .stale && !refused.isTruthCut)
        #expect(refused["teams"]?.delete.count == 100)
    }
}
