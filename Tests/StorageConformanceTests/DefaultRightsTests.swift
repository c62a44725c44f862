import MartletModel
internal import MartletProtocol
import MartletServerCore
import SetTexts
import Testing

/// Values that defaults give a record need no right of their own.
@Suite("Rights to values that are defaults")
struct DefaultRightsTests {
    private static let ann = Principal(name: "a", user: "ann")

    /// Teams 1 to 3, and player 1 of team 2. Everyone may insert and update names of players, and delete
    /// teams.
    private static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE players (
                id INTEGER PRIMARY KEY, name TEXT, fee INTEGER DEFAULT 5, kind TEXT DEFAULT 'plain',
                paid BOOLEAN DEFAULT FALSE, note TEXT,
                team_id INTEGER DEFAULT 1 REFERENCES teams (id) ON DELETE SET DEFAULT);
            """)
        try server.send(
            SetText().create("teams", "-1", #""name":"A""#).create("teams", "-2", #""name":"B""#)
                .create("teams", "-3", #""name":"C""#)
                .create("players", "-1", #""name":"P","team_id":-2"#))
        try server.secure(
            by: """
                CREATE POLICY every ON teams USING (true);
                CREATE POLICY every ON players USING (true);
                GRANT SELECT ON players TO PUBLIC;
                GRANT INSERT (name) ON players TO PUBLIC;
                GRANT UPDATE (name) ON players TO PUBLIC;
                """)
        return server
    }

    @Test(
        "a new record needs the privilege only for columns whose values are not the defaults",
        arguments: StorageKind.all)
    func inserts(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        // A sequence of PostgreSQL takes no number back from a refused set.
        server.isCompared = false
        func create(_ values: String) throws -> ChangeSet {
            try server.send(
                SetText().create("players", "-9", #""name":"N",\#(values)"#), from: "d2",
                as: Self.ann)
        }
        let defaults = #""fee":5,"kind":"plain","paid":false,"team_id":1,"note":null"#
        #expect(try create(defaults).conflict != true)
        for (values, column) in [
            (#""fee":6"#, "fee"), (#""fee":null"#, "fee"), (#""kind":"Plain""#, "kind"),
            (#""paid":true"#, "paid"), (#""note":"x""#, "note"), (#""team_id":2"#, "team_id"),
        ] {
            let refused = try create(values)
            #expect(refused.reason == .permission, "\(values)")
            #expect(refused.message?.contains("you may not write “\(column)”") == true)
        }
    }

    @Test("the effects of ON DELETE SET DEFAULT need no right", arguments: StorageKind.all)
    func actions(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        func send(_ set: SetText) throws -> RefusalReason? {
            try server.send(set, from: "d2", as: Self.ann).reason
        }
        let toDefault = SetText().update("players", "1", #""revision":1,"team_id":1"#)
        #expect(try send(toDefault) == .permission)
        let deletion = #""revision":1"#
        #expect(
            try send(
                SetText().update("players", "1", #""revision":1,"team_id":null"#)
                    .delete("teams", "2", deletion)) == .permission)
        // The deletion has to be that of the record that it refers to.
        #expect(
            try send(
                SetText().update("players", "1", #""revision":1,"team_id":1"#)
                    .delete("teams", "3", deletion)) == .permission)
        #expect(
            try send(
                SetText().update("players", "1", #""revision":1,"team_id":1"#)
                    .delete("teams", "2", deletion)) == nil)
        #expect(try server.rows("SELECT team_id FROM players") == "1")
    }
}
