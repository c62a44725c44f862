import Foundation
import Martlet
import MartletModel
import Testing
import Waiting

/// Devices that know the rules, with a server over the network.
@Suite("People who may not do everything", .timeLimit(.minutes(5)))
struct RightsLiveTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL, owner TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, fee INTEGER, day TEXT,
            team INTEGER REFERENCES teams(id));
        """

    private static let rules = """
        -- A comment for the office only.
        CREATE POLICY every ON teams FOR SELECT USING (true);
        CREATE POLICY own ON teams USING (owner = martlet_user());
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY every ON players FOR SELECT USING (true);
        CREATE POLICY coach ON players TO coach
            USING (EXISTS (SELECT 1 FROM teams WHERE teams.id = team AND owner = martlet_user()));
        CREATE POLICY cheap ON players AS RESTRICTIVE FOR UPDATE TO coach USING (fee IS NULL OR fee < 100);
        CREATE POLICY office ON players TO office USING (true);
        GRANT SELECT ON players TO PUBLIC;
        GRANT INSERT (name, team), DELETE, UPDATE (name, team) ON players TO coach;
        GRANT ALL ON players TO office;
        """

    /// A server, the office's device, and Ann's.
    private struct Pair {
        let server: LiveServer
        let office: MartletClient
        let ann: MartletClient

        init(rules: String? = RightsLiveTests.rules, roles: [String] = ["coach"]) async throws {
            server = try LiveServer(
                snapshotEvery: 1, schema: RightsLiveTests.schema, rules: rules)
            try await server.start()
            office = try await Self.open(server, "olga", ["office"])
            ann = try await Self.open(server, "ann", roles)
        }

        static func open(
            _ server: LiveServer, _ user: String, _ roles: [String]
        ) async throws -> MartletClient {
            let token = try server.makeToken(user: user, roles: roles).text
            return try await server.device(
                user, transport: try await server.transport(token: token)
            ) { $0.pull = .onRequest }
        }

        func end() async {
            await office.close()
            await ann.close()
            await server.stop()
        }
    }

    private static func refusal(_ work: () async throws -> Void) async throws -> StoreError? {
        do {
            try await work()
            return nil
        } catch let error as StoreError {
            return error
        }
    }

    private static func insert(
        _ name: String, _ team: RecordID, _ client: MartletClient, fee: Int64? = nil
    ) async throws -> RecordID {
        try await client.write { context in
            var values: RecordValues = ["name": .text(name), "team": team.sqlValue]
            if let fee { values["fee"] = .integer(fee) }
            return try context.insert("players", values)
        }
    }

    @Test("a save that the rules do not allow is refused at once, and nothing is queued")
    func early() async throws {
        let pair = try await Pair()
        let ann = pair.ann
        // The first exchange brings the rules.
        try await ann.sync()
        let mine = try await ann.write {
            try $0.insert("teams", ["name": "Owls", "owner": "ann"])
        }
        let pia = try await Self.insert("Pia", mine, ann)
        let fault = try await Self.refusal { _ = try await Self.insert("Rex", mine, ann, fee: 3) }
        #expect(fault?.kind == .permission && fault?.remedy == .askForTheRight)
        let message = "you may not write “fee” of “players”"
        #expect(fault == nil || fault?.message.contains(message) == true, "\(fault as Any)")
        let other = try await Self.refusal {
            _ = try await ann.write { try $0.insert("teams", ["name": "Jays", "owner": "bob"]) }
        }
        #expect(other?.kind == .permission && other?.table == "teams", "\(other as Any)")
        #expect(try await ann.status().outbox == 2)
        try await ann.sync()
        #expect(try await ann.status().parked == 0)
        try await pair.office.sync()
        let id = try await ann.read { try $0.currentID("players", pia) }
        try await pair.office.write { try $0.update("players", id, ["fee": 200]) }
        try await pair.office.sync()
        try await ann.sync()
        let dear = try await Self.refusal {
            _ = try await ann.write { try $0.update("players", id, ["name": "Mia"]) }
        }
        #expect(dear?.policy == "cheap" && dear?.key == id, "\(dear as Any)")
        await pair.end()
    }

    @Test("a form can ask what its user may do, and follow the answer")
    func may() async throws {
        let pair = try await Pair()
        let (ann, office) = (pair.ann, pair.office)
        // Without rules everything may be tried.
        #expect(try await ann.may(.insert, "teams", values: ["owner": "bob"]))
        try await office.sync()
        let team = try await office.write {
            try $0.insert("teams", ["name": "Owls", "owner": "olga"])
        }
        let player = try await Self.insert("Pia", team, office, fee: 3)
        try await office.sync()
        try await ann.sync()
        let id = try await office.read { try $0.currentID("players", player) }
        let owls = try await office.read { try $0.currentID("teams", team) }
        #expect(try await office.may(.update, "players", id, ["fee"]))
        #expect(try await !ann.may(.update, "players", id, ["name"]))
        #expect(try await !ann.may(.delete, "players", id))
        #expect(try await !ann.may(.delete, "players", .integer(999)))
        #expect(try await ann.may(.insert, "players"))
        #expect(try await !ann.may(.insert, "players", nil, ["fee"]))
        #expect(try await !ann.may(.insert, "players", values: ["team": owls.sqlValue]))
        let fault = try await Self.refusal { _ = try await ann.may(.update, "players", id, ["x"]) }
        #expect(fault?.kind == .unknown)
        let unknown = try await Self.refusal { _ = try await ann.may(.insert, "x") }
        #expect(unknown?.kind == .unknown)

        // The team becomes hers, and the form that is open follows.
        let answers = ann.observe { try $0.may(.update, "players", id, ["name"]) }
        var iterator = answers.makeAsyncIterator()
        #expect(try await iterator.next() == false)
        try await office.write { try $0.update("teams", owls, ["owner": "ann"]) }
        try await office.sync()
        try await ann.sync()
        #expect(try await iterator.next() == true)
        #expect(try await !ann.may(.update, "players", id, ["name", "fee"]))
        #expect(try await ann.may(.update, "players", id, values: ["team": owls.sqlValue]))
        #expect(try await !ann.may(.update, "players", id, values: ["team": .null]))
        await pair.end()
    }

    @Test(
        "the rules follow the token and the server's file, and a device without them tries everything"
    )
    func changing() async throws {
        let pair = try await Pair(roles: [])
        let ann = pair.ann
        try await ann.sync()
        #expect(try await !ann.may(.insert, "players"))
        await ann.close()
        var again = try await Pair.open(pair.server, "ann", ["coach"])
        // Until it has exchanged, the device knows of no other rights.
        #expect(try await !again.may(.insert, "players"))
        try await again.sync()
        #expect(try await again.may(.insert, "players"))
        try await pair.server.start(rules: nil)
        try await again.sync()
        #expect(try await again.may(.insert, "teams", values: ["owner": "bob"]))
        // Rights of roles to types count as well.
        try await pair.server.start(
            rules: #"{"types": {"teams": {"create": ["office"]}}}"#)
        try await again.sync()
        #expect(try await !again.may(.insert, "teams"))
        #expect(try await again.may(.insert, "players"))
        let fault = try await Self.refusal {
            _ = try await again.write { try $0.insert("teams", ["name": "Jays"]) }
        }
        let message = "you may not create records of “teams”"
        #expect(fault == nil || fault?.message.contains(message) == true, "\(fault as Any)")
        #expect(fault?.kind == .permission)
        await again.close()
        again = try await Pair.open(pair.server, "ann", ["office"])
        try await again.sync()
        #expect(try await again.may(.insert, "teams"))
        await again.close()
        await pair.end()
    }
}
