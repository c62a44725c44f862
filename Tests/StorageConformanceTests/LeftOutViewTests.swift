import MartletModel
import SetTexts
import Testing

@testable import MartletServerCore

/// Another program gives rows values that no device can be sent. People who see a part must not keep such
/// a record, because nobody can tell whether they still may see it.
@Suite("Records that another program made unsendable: they leave views that show a part")
struct LeftOutViewTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, boss TEXT, share REAL);
        CREATE TABLE members (id INTEGER PRIMARY KEY, person TEXT, team_id INTEGER, share REAL);
        CREATE TABLE players (id INTEGER PRIMARY KEY, name TEXT, team_id INTEGER);
        """

    private static let rules = """
        CREATE POLICY own ON teams USING (boss = martlet_user());
        CREATE POLICY self ON members USING (person = martlet_user());
        CREATE POLICY team ON players USING (EXISTS (
            SELECT 1 FROM members AS m WHERE m.team_id = players.team_id));
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY office ON members TO office USING (true);
        CREATE POLICY office ON players TO office USING (true);
        """

    private static let office = Principal(name: "o", user: "olga", roles: ["office"])

    /// Two teams of Ann with a player each, and a device of Ann and one of the office.
    private struct Club {
        let server: TestDataSet
        let ann = ViewedDevice("a", Principal(name: "a", user: "ann"))
        let office = ViewedDevice("o", LeftOutViewTests.office)

        init(_ kind: StorageKind) async throws {
            server = try await TestDataSet(kind, LeftOutViewTests.schema)
            server.isCompared = false
            try server.secure(by: LeftOutViewTests.rules)
            var set = SetText()
            for number in 1...2 {
                set = set.create("teams", "-\(number)", #""name":"T","boss":"ann""#)
                    .create("members", "-\(number)", #""person":"ann","team_id":\#(number)"#)
                    .create("players", "-\(number)", #""name":"P","team_id":\#(number)"#)
            }
            try server.send(set, from: "writer", as: LeftOutViewTests.office)
            try exchange()
            #expect(ann.records.values.map(\.count) == [2, 2, 2])
        }

        /// Has another program write, and both devices exchange.
        func write(_ sql: String) throws {
            let infinity = server.kind.isPostgres ? "'NaN'" : "9e999"
            try server.execute(sql.replacing("BAD", with: infinity))
            while server.node.takeExternalWrites(now: 5_000) {}
            try #require(server.node.takeFault() == nil)
            try exchange()
        }

        private func exchange() throws {
            for device in [ann, office] { try device.exchange(with: server) }
        }

        func ids(_ type: String, on device: ViewedDevice) -> [String] {
            (device.records[type] ?? [:]).keys.map(\.description).sorted()
        }
    }

    @Test(
        "at once with the value by which it is hidden, before, and again when it is corrected",
        arguments: StorageKind.all, [false, true])
    func record(kind: StorageKind, restarts: Bool) async throws {
        let club = try await Club(kind)
        try club.write("UPDATE teams SET share = BAD, boss = 'bob' WHERE id = 1")
        #expect(club.ids("teams", on: club.ann) == ["2"])
        #expect(club.ann.heard.contains(#""hidden":[1]"#))
        // Nothing is known of the row, so it goes although it would still be shown.
        try club.write("UPDATE teams SET share = BAD WHERE id = 2")
        #expect(club.ids("teams", on: club.ann).isEmpty)
        #expect(club.ids("teams", on: club.office) == ["1", "2"])
        let head = club.server.node.head.revision
        try club.write("UPDATE teams SET name = 'N', share = BAD")
        #expect(club.server.node.head.revision == head, "it is left out already")
        if restarts { try club.server.restart() }
        try club.write("UPDATE teams SET share = 1")
        #expect(club.ids("teams", on: club.ann) == ["2"])
        #expect(club.ann.records["teams"]?[.integer(2)]?["name"] == .text("N"))
        #expect(club.office.records["teams"]?[.integer(1)]?["boss"] == .text("bob"))
        // A row that is gone is no longer left out.
        try club.write("UPDATE teams SET share = BAD WHERE id = 2")
        try club.write("DELETE FROM teams WHERE id = 2")
        #expect(club.ids("teams", on: club.office) == ["1"])
        #expect(club.ids("teams", on: club.ann).isEmpty)
    }

    @Test(
        "a row that policies look up counts as not there until it is corrected",
        arguments: StorageKind.all)
    func lookedUp(kind: StorageKind) async throws {
        let club = try await Club(kind)
        try club.write("UPDATE members SET share = BAD, person = 'bob' WHERE id = 1")
        #expect(club.ids("members", on: club.ann) == ["2"])
        #expect(club.ids("players", on: club.ann) == ["2"])
        try club.write("UPDATE members SET share = BAD WHERE id = 2")
        #expect(club.ids("players", on: club.ann).isEmpty)
        #expect(club.ids("players", on: club.office) == ["1", "2"])
        try club.write("UPDATE members SET share = NULL")
        #expect(club.ids("members", on: club.ann) == ["2"])
        #expect(club.ids("players", on: club.ann) == ["2"])
    }
}
