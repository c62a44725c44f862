import MartletModel
internal import MartletProtocol
import MartletRules
import SQLiteKit
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("What one set may cost")
struct WorkBoundTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE words (id INTEGER PRIMARY KEY, text TEXT);
        CREATE TABLE others (id INTEGER PRIMARY KEY, text TEXT);
        """

    /// Makes a server with this many teams, and as many players without a team.
    private func server(_ count: Int, _ more: String = "", isIndexed: Bool = true) throws
        -> TestServer
    {
        let server = try TestServer(
            Self.schema + (isIndexed ? "CREATE INDEX members ON players (team_id);" : "") + more)
        var set = SetText()
        for number in 1...count {
            set = set.create("teams", "-\(number)").create("players", "-\(number)")
        }
        try server.send(set)
        return server
    }

    @Test("a set that deletes parents and moves children costs in proportion to its length")
    func linearDeletes() throws {
        func cost(_ count: Int) throws -> (steps: Int, looks: Int) {
            let server = try server(count)
            var set = SetText()
            for number in 1...count {
                set = set.delete("teams", "\(number)", #""revision":1"#)
                    .update("players", "\(number)", #""revision":1,"team_id":null"#)
            }
            let session = try server.store.session()
            _ = session.connection.takeVirtualMachineSteps()
            #expect(try server.send(set).fate == "accepted 2")
            return (session.connection.takeVirtualMachineSteps(), session.updateLooks)
        }
        let (few, many) = (try cost(100), try cost(1_000))
        #expect(many.steps < 15 * few.steps, "\(few) and \(many)")
        // Outside SQLite the server looks at each update a few times, however many records go.
        #expect((100...400).contains(few.looks) && (1_000...4_000).contains(many.looks))
    }

    @Test("players that a set puts under a team it deletes go with it")
    func moved() throws {
        let server = try server(3)
        let set = try server.send(
            SetText().delete("teams", "1", #""revision":1"#)
                .update("players", "2", #""revision":1,"team_id":1"#)
                .update("players", "3", #""revision":1,"team_id":2"#))
        #expect(set.fate == "accepted 2")
        #expect(try server.rows("SELECT id, team_id FROM players ORDER BY id") == "1|-\n3|2")
    }

    @Test("what a delete changes is found up to a number of records")
    func most() throws {
        let server = try server(1)
        try server.execute("INSERT INTO players (team_id) VALUES (1), (1), (1), (1)")
        let session = try server.store.session()
        let team = try #require(session.schema.index(of: "teams"))
        func found(_ most: Int) throws -> Int? {
            try session.affected(
                byDeleting: [RecordAddress(team, .integer(1))], updating: [:], most: most)?.count
        }
        #expect(try found(4) == 4)
        #expect(try found(3) == nil)
    }

    @Test(
        "a hidden record whose deletion would change too much is refused as one that does not exist"
    )
    func hiddenExcess() throws {
        let server = try server(1)
        try server.execute("INSERT INTO players (team_id) VALUES (1), (1), (1), (1)")
        server.node.policies = try RulesProgram(
            "CREATE POLICY named ON teams USING (name = 'A');", schema: server.node.schema)
        try server.store.session().bound.mostAffected = 3
        let messages = try ["1", "77"].map { id in
            let set = try server.send(SetText().delete("teams", id, #""revision":1"#))
            #expect(set.reason == .stale && set["teams"]?.delete.count == 1)
            return set.message
        }
        #expect(messages[0] == messages[1])
    }

    @Test("finding what a delete changes is given up, and the others of the batch go on")
    func facts() throws {
        let server = try server(500, isIndexed: false)
        let session = try server.store.session()
        session.bound.most = 100_000
        var set = SetText("x", sequence: 1)
        for number in 1...500 { set = set.delete("teams", "\(number)", #""revision":1"#) }
        let answer = try server.exchange([
            set, SetText("y", sequence: 2).create("words", "-1", #""text":"a""#),
        ])
        #expect(answer.changeSets.map(\.fate) == ["accepted 2", "invalid"])
        #expect(answer.changeSets.last?.message?.contains("too long") == true)
        #expect(try server.rows("SELECT count(*) FROM teams") == "500")
        session.bound.most = SetMeasure.mostSteps
        var again = SetText("z", sequence: 3)
        for number in 1...500 { again = again.delete("teams", "\(number)", #""revision":1"#) }
        #expect(try server.send(again).fate == "accepted 3")
    }

    @Test("carrying a set out is given up, and the others of the batch go on")
    func carryingOut() throws {
        let server = try server(
            40,
            """
            CREATE TRIGGER slow AFTER INSERT ON words BEGIN
                INSERT INTO others (text) SELECT 'n' FROM teams AS a, teams AS b, teams AS c
                    WHERE a.id + b.id + c.id < 0;
            END;
            """)
        try server.store.session().bound.most = 50_000
        let answer = try server.exchange([
            SetText("x", sequence: 1).create("others", "-1", #""text":"a""#),
            SetText("y", sequence: 2).create("words", "-1", #""text":"a""#),
            SetText("z", sequence: 3).create("others", "-2", #""text":"b""#),
        ])
        #expect(answer.changeSets.map(\.fate) == ["accepted 2", "accepted 3", "invalid"])
        #expect(answer.changeSets.last?.message?.contains("too long") == true)
        #expect(try server.rows("SELECT text FROM others ORDER BY id") == "a\nb")
        #expect(try server.rows("SELECT count(*) FROM words") == "0")
    }
}
