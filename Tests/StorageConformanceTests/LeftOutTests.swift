import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("Records that another program made unsendable: nothing of them is overridden unseen")
struct LeftOutTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, share REAL);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT, share REAL,
            team INTEGER REFERENCES teams (id) ON DELETE CASCADE,
            other INTEGER REFERENCES teams (id) ON DELETE SET NULL);
        """

    private static let sentence = """
        another program changed a record of “teams”, which the set would update: a value of it cannot be \
        sent to devices, and it must be corrected in the database
        """

    /// Teams 1 and 2, and player 1 of team 2, all by the device d1.
    private func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, Self.schema)
        // The other program's SQL is not the same everywhere.
        server.isCompared = false
        try server.send(
            SetText().create("teams", "-1", #""name":"A""#).create("teams", "-2", #""name":"B""#))
        try server.send(SetText().create("players", "-3", #""name":"P","team":2,"other":2"#))
        return server
    }

    private func write(_ sql: String, to server: TestDataSet) throws {
        let infinity = server.kind.isPostgres ? "'Infinity'" : "9e999"
        try server.execute(sql.replacing("INFINITY", with: infinity))
        while server.node.takeExternalWrites(now: 5_000) {}
        try #require(server.node.takeFault() == nil)
    }

    private func edit(_ attributes: String) -> SetText {
        SetText().update("teams", "1", #""revision":1,\#(attributes)"#)
    }

    @Test(
        "edits and deletions are refused until the database is corrected",
        arguments: StorageKind.all)
    func named(kind: StorageKind) async throws {
        let server = try await server(kind)
        try write("UPDATE teams SET name = 'theirs', share = INFINITY WHERE id = 1", to: server)
        for restarts in [false, true] {
            if restarts { try server.restart() }
            for client in ["d1", "d2"] {
                for attributes in [#""name":"mine""#, #""share":1.5"#] {
                    let refused = try server.send(edit(attributes), from: client)
                    #expect(refused.fate == "stale" && refused.message == Self.sentence)
                    #expect(refused.types.flatMap(\.entries).isEmpty)
                }
                let refused = try server.send(SetText().delete("teams", "1"), from: client)
                #expect(refused.fate == "stale")
                #expect(
                    refused.message
                        == Self.sentence.replacing("update", with: "delete"))
            }
        }
        #expect(try server.rows("SELECT name FROM teams WHERE id = 1") == "theirs")
        #expect(server.node.head.revision == 3)
        let other = try server.send(SetText().update("teams", "2", #""revision":1,"name":"C""#))
        #expect(other.fate == "accepted 4")

        try write("UPDATE teams SET share = 2 WHERE id = 1", to: server)
        let entry = try server.answer(#"{"protocol":1,"maxRevision":4,"changeSets":[]}"#)
        #expect(
            entry.changeSets.map(\.content) == ["teams update [1] 1@5(name=theirs share=2.0)"])
        // Whoever has not seen it is refused as ever.
        let unseen = try server.send(edit(#""name":"mine""#), at: 4)
        #expect(unseen.fate == "stale" && unseen.message != Self.sentence)
        #expect(try server.send(edit(#""name":"mine""#)).fate == "stale")
        let seen = try server.send(SetText().update("teams", "1", #""revision":5,"name":"mine""#))
        #expect(seen.fate == "accepted 6")
    }

    @Test("what another program deletes is deleted for all", arguments: StorageKind.all)
    func deletedByProgram(kind: StorageKind) async throws {
        let server = try await server(kind)
        try write("UPDATE teams SET share = INFINITY WHERE id = 1", to: server)
        try write("DELETE FROM teams WHERE id = 1", to: server)
        let entry = try server.answer(#"{"protocol":1,"maxRevision":3,"changeSets":[]}"#)
        #expect(entry.changeSets.map(\.content) == ["teams delete [1]"])
        let gone = try server.send(edit(#""name":"mine""#))
        #expect(gone.message == "a record of “teams” the set would update does not exist")
    }

    @Test(
        "a deletion that would remove or change such a record is refused",
        arguments: StorageKind.all,
        ["team", "other"])
    func referring(kind: StorageKind, column: String) async throws {
        let server = try await server(kind)
        let rest = column == "team" ? "other" : "team"
        try write(
            "UPDATE players SET name = 'theirs', share = INFINITY, \(rest) = NULL", to: server)
        let refused = try server.send(SetText().delete("teams", "2"))
        #expect(refused.fate == "stale")
        #expect(
            refused.message == """
                another program changed a record of “players”, which deleting would change: a value of it \
                cannot be sent to devices, and it must be corrected in the database
                """)
        #expect(try server.rows("SELECT name FROM players") == "theirs")
        try write("UPDATE players SET share = 1", to: server)
        #expect(try server.send(SetText().delete("teams", "2")).fate == "accepted 5")
    }
}
