import Foundation
import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SetTexts
import Testing

/// Snapshots of views: the records in them, and who may have them.
@Suite("Snapshots of views")
struct ViewSnapshotTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT, fee INTEGER, team_id INTEGER REFERENCES teams (id));
        CREATE TABLE words (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        """

    private static let rules = """
        CREATE POLICY every ON teams USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY cheap ON players TO coach USING (fee < 10);
        CREATE POLICY long ON words TO writer USING (name LIKE 'x%');
        CREATE POLICY office ON words TO office USING (true);
        CREATE POLICY short ON words TO coach USING (name LIKE 'w%');
        """

    private static let office = Principal(name: "o", user: "olga", roles: ["office"])
    private static let ann = Principal(name: "a", user: "ann", roles: ["coach"])
    private static let bob = Principal(name: "b", user: "bob", roles: ["coach"])
    private static let cyd = Principal(name: "c", user: "cyd")

    /// A server with two players. Coaches see one of them.
    private static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.secure(by: rules)
        try server.send(
            SetText().create("teams", "-1", #""name":"A""#)
                .create("players", "-1", #""name":"Pia","fee":5,"team_id":-1"#)
                .create("players", "-2", #""name":"Canary","fee":50,"team_id":-1"#)
                .create("words", "w1", #""name":"word""#)
                .create("words", "w2", #""name":"Canary""#),
            as: office)
        return server
    }

    /// A snapshot of a person's view.
    private struct Made {
        let name: String
        let cut: SnapshotMaker.Cut
        let file: Connection

        var snapshot: DataSetNode.ViewSnapshot {
            DataSetNode.ViewSnapshot(revision: cut.revision, lineage: cut.lineage)
        }

        func rows(_ sql: String) throws -> [String] {
            try file.prepare(sql).rows { (row) throws(SQLiteError) in
                (0..<row.columnCount).map { row.text($0) }.joined(separator: "|")
            }
        }
    }

    private static func make(_ server: TestDataSet, for person: Principal) throws -> Made {
        let claim = try #require(
            try server.node.snapshotClaim(of: person, among: [:], now: server.now))
        #expect(claim.granted == nil)
        let (cut, file) = try server.snapshot(of: claim.view) { (body) throws(StorageFault) in
            try server.node.whenViewed(by: person, as: claim.name, now: server.now, body)
        }
        #expect(cut.view == claim.view)
        return Made(name: claim.name, cut: cut, file: file)
    }

    private static func granted(
        _ made: Made, to person: Principal, _ server: TestDataSet
    ) throws -> Bool {
        try server.node.snapshotClaim(
            of: person, among: [made.name: made.snapshot], now: server.now)?.granted
            == made.snapshot
    }

    @Test(
        "have the records that the view shows, for everybody who has the view",
        arguments: StorageKind.all)
    func shared(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        // A write that is not in the log yet is in the snapshot, too.
        try server.execute("UPDATE players SET name = 'Pim' WHERE id = 1")
        let made = try Self.make(server, for: Self.ann)
        let hash = try #require(try server.lineage(at: 2))
        #expect(made.cut.revision == 2 && made.cut.lineage == "\(hash)-v\(made.cut.view ?? 0)")
        #expect(try made.rows("SELECT id, name, fee FROM players") == ["1|Pim|5"])
        #expect(try made.rows("SELECT name FROM teams") == ["A"])
        #expect(try made.rows("SELECT id, name FROM words") == ["w1|word"])
        #expect(try made.rows("SELECT id FROM martlet_records ORDER BY 1") == ["1", "1", "w1"])
        #expect(try Self.granted(made, to: Self.ann, server))
        #expect(try Self.granted(made, to: Self.bob, server))
        #expect(try !Self.granted(made, to: Self.cyd, server))
        let all = [made.name: made.snapshot]
        #expect(
            try server.node.snapshotClaim(of: Self.office, among: all, now: server.now) == nil)
        // One of another history, or of a log that goes on, is none.
        for (revision, lineage) in [
            (made.cut.revision, hash), (1, made.cut.lineage), (9, made.cut.lineage),
        ] {
            let other = DataSetNode.ViewSnapshot(revision: revision, lineage: lineage)
            #expect(
                try server.node.snapshotClaim(
                    of: Self.bob, among: [made.name: other], now: server.now)?.granted == nil)
        }
        let role = Principal(name: "b", user: "bob", roles: ["coach", "writer"])
        #expect(try !Self.granted(made, to: role, server))
        // Writers see no player at all.
        let writer = Principal(name: "w", user: "wim", roles: ["writer"])
        let other = try Self.make(server, for: writer)
        #expect(try other.rows("SELECT name FROM teams") == ["A"])
        #expect(try other.rows("SELECT name FROM players") == [])
        #expect(try other.rows("SELECT id FROM martlet_records") == ["1"])
    }

    @Test("another user's device gets none, whatever its user sees", arguments: StorageKind.all)
    func othersDevice(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let made = try Self.make(server, for: Self.ann)
        _ = try server.node.snapshotClaim(
            of: Self.ann, for: "a1", among: [made.name: made.snapshot], now: server.now)
        func problem(_ person: Principal, _ name: String = "a1") throws -> String? {
            try server.node.problem(naming: name, by: person, now: server.now)?.kind
        }
        for _ in 0..<2 {
            #expect(try problem(Self.ann) == nil)
            for other in [Self.bob, Self.cyd, Self.office] {
                #expect(try problem(other) == "clientBound")
            }
            #expect(try problem(Self.bob, "b1") == nil)
            #expect(try problem(Self.bob, "b\0") == "invalidRequest")
            try server.restart()
            try server.secure(by: Self.rules)
        }
    }

    @Test(
        "are for nobody any more when a record has left the view", arguments: StorageKind.all)
    func left(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        var made = try Self.make(server, for: Self.ann)
        try server.send(
            SetText().create("players", "-3", #""name":"Pam","fee":1"#), as: Self.office)
        try server.send(
            SetText().update("players", "1", #""revision":1,"name":"Pim""#), as: Self.office)
        #expect(try Self.granted(made, to: Self.bob, server))
        // It is shown to nobody who comes now, and was never shown to Bob.
        try server.send(
            SetText().update("players", "1", #""revision":3,"fee":70"#), as: Self.office)
        #expect(try !Self.granted(made, to: Self.bob, server))
        made = try Self.make(server, for: Self.bob)
        #expect(try made.rows("SELECT name FROM players") == ["Pam"])
        #expect(try Self.granted(made, to: Self.ann, server))
        try server.send(SetText().delete("players", "3", #""revision":2"#), as: Self.office)
        #expect(try !Self.granted(made, to: Self.ann, server))
    }

    @Test(
        "lead on to what has changed since, and to another view of the person who was given one",
        arguments: StorageKind.all)
    func next(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        var made = try Self.make(server, for: Self.ann)
        try server.send(
            SetText().create("players", "-3", #""name":"Pam","fee":1"#), as: Self.office)
        #expect(try Self.granted(made, to: Self.bob, server))
        func begun(_ name: String, _ person: Principal) -> ViewedDevice {
            let device = ViewedDevice(name, person)
            device.lie(revision: made.cut.revision, lineage: made.cut.lineage)
            return device
        }
        let device = begun("v1", Self.bob)
        try device.exchange(with: server)
        #expect(device.beginnings == 0 && device.records["players"]?.keys.first == .integer(3))
        #expect(!device.heard.contains(#/"delete":\[[^\]]/#))
        // A record that leaves while the device was on its way is told, and so is a deleted one.
        try server.send(
            SetText().update("players", "1", #""revision":1,"fee":70"#), as: Self.office)
        try server.send(SetText().delete("words", "w1", #""revision":1"#), as: Self.office)
        let late = begun("v2", Self.bob)
        try late.exchange(with: server)
        #expect(late.beginnings == 0)
        #expect(late.heard.contains(#""delete":[1]"#) && late.heard.contains(#""delete":["w1"]"#))
        // Eve was given the view with the snapshot, and nothing else. She is no coach any more.
        made = try Self.make(server, for: Self.bob)
        #expect(
            try Self.granted(
                made, to: Principal(name: "e", user: "eve", roles: ["coach"]), server))
        let eve = begun("v5", Principal(name: "e", user: "eve"))
        try eve.exchange(with: server)
        #expect(eve.beginnings == 0 && eve.heard.contains(#""delete":[3"#))
        // Bob is no coach any more, either. He was given the view; Dan never was.
        let bob = begun("v3", Principal(name: "b", user: "bob"))
        try bob.exchange(with: server)
        #expect(bob.beginnings == 0 && bob.heard.contains(#""delete":[3"#))
        let dan = begun("v4", Principal(name: "d", user: "dan"))
        try dan.exchange(with: server)
        #expect(dan.beginnings == 1 && !dan.heard.contains(#/"delete":\[[^\]]/#))
    }

    private static func states(_ server: TestDataSet) throws -> [String] {
        try DevicePurges(prefix: "martlet_").list { query in
            try server.rows(query).split(separator: "\n").map { line in
                line.split(separator: "|", omittingEmptySubsequences: false)
                    .map { $0 == "-" ? nil : String($0) }
            }
        }.map { "\($0.clientID) \($0.state.rawValue)" }
    }

    private static func claim(
        _ made: Made, of person: Principal, for device: String, _ server: TestDataSet
    ) throws -> DataSetNode.SnapshotClaim {
        try #require(
            try server.node.snapshotClaim(
                of: person, for: device, among: [made.name: made.snapshot], now: server.now))
    }

    /// Confirms that nothing hidden is left on a device.
    private static func confirm(_ device: ViewedDevice, to server: TestDataSet) throws {
        let text = """
            {"clientId":"\(device.name)","maxRevision":\(device.revision),\
            "lineage":"\(device.lineage ?? "")","purged":{"view":\(device.view ?? 0),\
            "revision":\(device.revision),"removed":[0,"0000000000000000"]},"changeSets":[]}
            """
        _ = try server.process([text], as: device.principal)[0].get()
    }

    @Test(
        "count as given to the device that gets the file, also if it never comes again",
        arguments: StorageKind.all)
    func givenToDevices(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let writer = Principal(name: "w", user: "ann", roles: ["coach", "writer"])
        let chief = Principal(name: "c", user: "ann", roles: ["office"])
        let device = ViewedDevice("a1", Self.ann)
        try device.exchange(with: server)
        try Self.confirm(device, to: server)
        #expect(try Self.states(server) == ["a1 confirmed", "d1 sees all"])
        // One of the view that the device has already changes nothing.
        let (own, other) = (
            try Self.make(server, for: Self.ann), try Self.make(server, for: writer)
        )
        #expect(try Self.claim(own, of: Self.ann, for: "a1", server).granted != nil)
        #expect(try Self.states(server)[0] == "a1 confirmed")
        // Another token, a snapshot, and then nothing more.
        #expect(try Self.claim(other, of: writer, for: "a1", server).granted == other.snapshot)
        #expect(try Self.states(server)[0] == "a1 waits")
        try server.restart()
        try server.secure(by: Self.rules)
        #expect(try Self.states(server)[0] == "a1 waits")
        try device.exchange(with: server)
        try Self.confirm(device, to: server)
        #expect(try Self.states(server)[0] == "a1 confirmed")
        // Everything, with memory that knows and does not know the device.
        for round in 0..<2 {
            if round == 1 {
                try server.restart()
                try server.secure(by: Self.rules)
            }
            let problem = try server.node.noteEverything(givenTo: "a1", of: chief, now: server.now)
            #expect(problem == nil)
            #expect(try Self.states(server)[0] == "a1 sees all")
            try device.exchange(with: server)
            try Self.confirm(device, to: server)
            #expect(try Self.states(server)[0] == "a1 confirmed")
        }
        // A device that the server does not know yet.
        #expect(try Self.claim(own, of: Self.ann, for: "a2", server).granted != nil)
        #expect(
            try server.node.noteEverything(givenTo: "c1", of: chief, now: server.now) == nil)
        #expect(try Self.states(server) == ["a1 confirmed", "a2 waits", "d1 sees all"])
    }

    @Test("are not for a device of somebody else, nor for one too many", arguments: StorageKind.all)
    func notForDevice(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try ViewedDevice("a1", Self.ann).exchange(with: server)
        let made = try Self.make(server, for: Self.bob)
        server.node.devicesPerUser = 1
        func problem(_ person: Principal, _ device: String) throws -> String? {
            let claim = try Self.claim(made, of: person, for: device, server)
            return claim.problem?.kind
        }
        #expect(try problem(Self.bob, "a1") == "clientBound")
        #expect(try problem(Self.bob, "b1") == nil)
        #expect(try problem(Self.bob, "b2") == "tooManyDevices")
        #expect(try problem(Self.ann, "a1") == nil)
        for name in ["", "b\u{0}"] {
            #expect(try problem(Self.bob, name) == "invalidRequest")
        }
        let chief = Principal(name: "c", user: "bob", roles: ["office"])
        #expect(
            try server.node.noteEverything(givenTo: "a1", of: chief, now: server.now)?.kind
                == "clientBound")
        #expect(try Self.states(server) == ["a1 waits", "b1 waits", "d1 sees all"])
    }

    @Test("are not made of a view that is older than the rows", arguments: [StorageKind.file])
    func old(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let view = try Self.make(server, for: Self.ann).cut.view
        try server.send(
            SetText().create("players", "-3", #""name":"Pam","fee":1"#), as: Self.office)
        let fault = #expect(throws: StorageFault.self) {
            try server.snapshot(of: try #require(view)) { (body) throws(StorageFault) in
                try body()
            }
        }
        #expect(fault?.kind == .busy)
        #expect(throws: StorageFault.self) {
            try server.node.whenViewed(by: Self.cyd, as: "another", now: server.now) {}
        }
    }

    @Test("that fail are no failure of the writer", arguments: StorageKind.all)
    func readerFails(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let node = server.node
        let name = try #require(try node.snapshotClaim(of: Self.ann, among: [:], now: 1)).name
        let failing = { () throws(StorageFault) in throw StorageFault(.failed, "no reader") }
        for claimed in [name, "another"] {
            #expect(throws: StorageFault.self) {
                try node.whenViewed(by: Self.ann, as: claimed, now: server.now, failing)
            }
            #expect(node.takeFault() == nil)
        }
        #expect(throws: StorageFault.self) {
            _ = try node.whenCaughtUp(now: server.now, failing)
        }
        #expect(node.takeFault() == nil)
        try server.send(
            SetText().create("players", "-3", #""name":"Pam","fee":1"#), as: Self.office)
        #expect(node.takeFault() == nil)
    }
}
