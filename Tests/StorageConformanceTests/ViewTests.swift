import MartletModel
import MartletProtocol
import MartletRules
import RandomKit
import SetTexts
import Testing

@testable import MartletServerCore

/// People who see a part of the data set, and whose part changes with records, roles, claims, and the
/// rules file.
@Suite("Views")
struct ViewTests {
    @Test(
        "every device has what its user may see, after every change of records, roles and rules",
        arguments: StorageKind.all, ViewWorld.seeds)
    func random(kind: StorageKind, seed: UInt64) async throws {
        var world = try await ViewWorld(kind, seed: seed)
        for _ in 0..<ViewWorld.steps { try world.step() }
        try world.end()
        // A world in which nothing moved would show nothing.
        #expect(world.moved > 20)
    }

    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT, owner TEXT, team_id INTEGER REFERENCES teams (id));
        """

    private static let rules = """
        CREATE POLICY all_teams ON teams USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY own ON players USING (owner = martlet_user());
        """

    private static let office = Principal(name: "o", user: "olga", roles: ["office"])
    private static let ann = Principal(name: "a", user: "ann")

    private static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.secure(by: rules)
        try server.send(
            SetText().create("teams", "-1", #""name":"A""#)
                .create("players", "-1", #""name":"P","owner":"ann","team_id":-1"#)
                .create("players", "-2", #""name":"Canary","owner":"bob","team_id":-1"#),
            as: office)
        return server
    }

    @Test(
        "an own record that its author may not see gets its id, and does not come back",
        arguments: StorageKind.all)
    func unseen(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.secure(
            by: """
                CREATE POLICY all_teams ON teams USING (true);
                CREATE POLICY own ON players FOR SELECT USING (owner = martlet_user());
                CREATE POLICY add ON players FOR INSERT WITH CHECK (true);
                """)
        let device = ViewedDevice("d2", Self.ann)
        try device.exchange(with: server)
        #expect(device.records["players"]?.count == 1)
        let fates = try device.exchange(
            with: server,
            [
                SetText("s1", sequence: 1).create(
                    "players", "-7", #""name":"Gift","owner":"bob""#)
            ])
        #expect(fates == ["accepted 2"])
        #expect(device.heard.contains(#""__oldId__":-7"#))
        #expect(!device.heard.contains("Gift"))
        #expect(device.records["players"]?.count == 1)
        // A repeated set is answered in the same way.
        let again = try server.text(
            """
            {"clientId":"d2","maxRevision":2,"lineage":"\(device.lineage ?? "")","changeSets":[\
            \(SetText("s1", sequence: 1).create("players", "-7", #""name":"Gift","owner":"bob""#))]}
            """, as: Self.ann)
        #expect(again.contains(#""__oldId__":-7"#) && !again.contains("Gift"))
    }

    @Test(
        "a device that names a view its user was never given begins again, and learns no ids",
        arguments: StorageKind.all)
    func liar(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let office = ViewedDevice("d1", Self.office)
        try office.exchange(with: server)
        let bob = ViewedDevice("d3", Principal(name: "b", user: "bob"))
        try bob.exchange(with: server)
        let honest = ViewedDevice("d2", Self.ann)
        try honest.exchange(with: server)
        let hash = try #require(try server.lineage(at: 1))
        let own = try #require(honest.lineage).dropFirst(hash.count + 2)
        let long =
            hash + "-v" + [String](repeating: String(own), count: 30).joined(separator: ".")
        for lineage in [
            long, hash, try #require(bob.lineage), hash + "-v99", hash + "-v", hash + "-vx",
        ] {
            let device = ViewedDevice("d2", Self.ann)
            device.lie(revision: 1, lineage: lineage)
            try device.exchange(with: server) {
                #expect(!$0.heard.contains(#/"delete":\[[^\]]/#))
            }
            #expect(device.beginnings == 1)
            #expect(device.records == honest.records)
        }
        // The hash before the first entry is no secret, and neither is the view of everything.
        let nothing = try #require(try server.lineage(at: 0))
        for lineage in ["", "-v0", "-rows.1.i9", "-v0-rows.1.i9"].map({ nothing + $0 }) {
            let device = ViewedDevice("d2", Self.ann)
            device.lie(revision: 0, lineage: lineage)
            try device.exchange(with: server) {
                #expect(!$0.heard.contains(#/"delete":\[[^\]]/#))
            }
            #expect(device.records == honest.records)
        }
    }

    @Test(
        "a device that names no lineage at a revision is taken to have everything",
        arguments: StorageKind.all)
    func unnamed(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        func problem(_ members: String, _ principal: Principal) throws -> String? {
            try server.problem("{\(members),\"changeSets\":[]}", as: principal)?.kind
        }
        let stopped = #""clientId":"d5","protocol":1,"maxRevision":1"#
        #expect(try problem(stopped, Self.ann) == "view")
        let other = #""clientId":"d4","protocol":1,"maxRevision":1"#
        #expect(try problem(other, Self.office) == nil)
        // It has nothing yet, or is a program that keeps to its own records.
        #expect(
            try problem(#""clientId":"d6","protocol":1,"maxRevision":0"#, Self.ann) == nil)
        #expect(try problem(#""clientId":"d7","maxRevision":1"#, Self.ann) == nil)
        try server.send(
            SetText().update("players", "2", #""revision":1,"owner":"ann""#), as: Self.office)
        let program = try server.text(#"{"maxRevision":1,"changeSets":[]}"#, as: Self.ann)
        #expect(program.contains("Canary") && !program.contains(#""name":"P""#))
    }

    @Test(
        "no set is decided of a request whose device has to begin again", arguments: StorageKind.all
    )
    func undecided(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let sets = [
            SetText("s1", sequence: 1, seen: 1).update("players", "1", #""revision":1,"name":"Q""#),
            SetText("s2", sequence: 2, seen: 1).delete("players", "2", #""revision":1"#),
        ]
        let list = sets.map(\.description).joined(separator: ",")
        func request(_ revision: Int) -> String {
            #"{"clientId":"d5","protocol":1,"maxRevision":\#(revision),"changeSets":[\#(list)]}"#
        }
        #expect(try server.problem(request(1), as: Self.ann)?.kind == "view")
        #expect(server.node.head.revision == 1)
        #expect(try server.rows("SELECT name FROM players WHERE id = 1") == "P")
        #expect(try !server.storage.isDecided("s1") && !server.storage.isDecided("s2"))
        // A device sends them again when it has all that its user may see.
        let device = ViewedDevice("d5", Self.ann)
        try device.exchange(with: server)
        let answer = try server.answer(
            #"{"clientId":"d5","protocol":1,"maxRevision":\#(device.revision),"#
                + #""lineage":"\#(device.lineage ?? "")","changeSets":[\#(list)]}"#, as: Self.ann)
        #expect(
            answer.changeSets.filter { $0.identifier != nil }.map(\.fate).sorted() == [
                "accepted 2", "stale",
            ])
    }

    @Test(
        "between two views, only the records move that one of both shows",
        arguments: StorageKind.all)
    func moves(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("d2", Self.ann)
        try device.exchange(with: server)
        #expect(device.records["players"]?.count == 1)
        // What the view hid before it was given to her, and what it shows to others, is not told.
        try server.secure(
            by: Self.rules.replacing("owner = martlet_user()", with: "name LIKE 'C%'"))
        let other = ViewedDevice("d4", Principal(name: "b", user: "bob"))
        try other.exchange(with: server)
        #expect(other.records["players"]?.keys.first == .integer(2))
        try server.send(
            SetText().update("players", "2", #""revision":1,"name":"Dan""#), as: Self.office)
        try server.send(
            SetText().create("players", "-7", #""name":"Cay","owner":"bob""#), as: Self.office)
        try other.exchange(with: server)
        try device.exchange(with: server)
        #expect(device.beginnings == 0)
        #expect(device.records["players"]?.keys.first == .integer(3))
        #expect(device.heard.contains(#""delete":[1]"#))
        #expect(!device.heard.contains(#""types":["teams""#))
    }

    @Test(
        "a record that two views showed leaves a device that moves to the second after it is deleted",
        arguments: StorageKind.all)
    func leavesBoth(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.secure(
            by: """
                CREATE POLICY all_teams ON teams USING (true);
                CREATE POLICY office ON players TO office USING (true);
                CREATE POLICY named ON players FOR SELECT USING (name LIKE martlet_claim('names'));
                """)
        func person(_ name: String, _ names: String) -> Principal {
            Principal(name: name, user: name, claims: ["names": names])
        }
        let device = ViewedDevice("d2", person("ann", "P%"))
        try device.exchange(with: server)
        #expect(device.records["players"]?.count == 1)
        let other = ViewedDevice("d3", person("bob", "%"))
        try other.exchange(with: server)
        #expect(other.records["players"]?.count == 2)
        try server.send(
            SetText().delete("players", "1", #""revision":1"#)
                .delete("players", "2", #""revision":1"#), as: Self.office)
        try other.exchange(with: server)
        device.principal = person("ann", "%")
        try device.exchange(with: server)
        #expect(device.beginnings == 0 && device.records["players"] == nil)
        // She never had the other one.
        #expect(device.heard.contains(#""delete":[1]"#))
    }

    @Test(
        "a deletion that is still to be told reaches a device whose user comes to see everything",
        arguments: StorageKind.all)
    func seesAllWithinDifference(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("d2", Self.ann)
        try device.exchange(with: server)
        #expect(device.records["players"]?.count == 1)
        try server.send(SetText().delete("players", "1", #""revision":1"#), as: Self.office)
        try server.send(
            SetText().update("teams", "1", #""revision":1,"name":"B""#), as: Self.office)
        try server.send(SetText().create("teams", "-2", #""name":"C""#), as: Self.office)
        // The view is computed again, and loses the record at the end of the log.
        try server.restart(answerBytes: 80, partBytes: 1)
        try server.secure(by: Self.rules)
        try device.exchange(with: server, rounds: 1)
        #expect(device.revision == 3 && device.records["players"]?.count == 1)
        device.principal = Principal(name: "a", user: "ann", roles: ["office"])
        try device.exchange(with: server)
        #expect(device.beginnings == 0)
        #expect(device.records["players"]?.keys.map(\.self) == [.integer(2)])
    }

    @Test("a listener is sent to the exchange, and never an entry", arguments: StorageKind.all)
    func listens(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("d2", Self.ann)
        try device.exchange(with: server)
        func heard() throws -> DeltaBatchBytes {
            var request = DeltaRequest(principal: Self.ann, since: 1)
            request.clientID = "d2"
            request.lineage = device.lineage
            guard case .batch(let batch) = server.reader().deltas(request) else {
                throw UnexpectedAnswer()
            }
            return batch
        }
        #expect(try heard().isEmpty)
        try server.send(
            SetText().create("players", "-9", #""name":"Canary2","owner":"bob""#), as: Self.office)
        // It does not concern her.
        #expect(try heard().isEmpty)
        try server.send(
            SetText().create("players", "-10", #""name":"Canary3","owner":"ann""#), as: Self.office)
        let batch = try heard()
        #expect(batch.isBehind)
        #expect(!String(decoding: batch.json, as: UTF8.self).contains("Canary"))
        let plain = DeltaRequest(principal: Self.ann, since: 0)
        guard case .batch(let all) = server.reader().deltas(plain) else { throw UnexpectedAnswer() }
        #expect(all.isBehind && !String(decoding: all.json, as: UTF8.self).contains("Canary"))
        // The batch that the office was just sent is for nobody who sees a part.
        let whole = DeltaRequest(principal: Self.office, since: 0)
        guard case .batch(let made) = server.reader().deltas(whole) else {
            throw UnexpectedAnswer()
        }
        #expect(String(decoding: made.json, as: UTF8.self).contains("Canary"))
        #expect(server.node.feed.madeDeltas(whole) != nil)
        #expect(server.node.feed.madeDeltas(plain) == nil)
    }

    @Test("an answer does not end before the device's goal", arguments: StorageKind.all)
    func goal(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try ViewedDevice("d2", Self.ann).exchange(with: server)
        // It does not concern her, so her view ends before it.
        try server.send(
            SetText().create("players", "-9", #""name":"Canary2","owner":"bob""#), as: Self.office)
        func pull(goal: Revision) -> String {
            #"{"clientId":"d2","protocol":1,"maxRevision":0,"goal":\#(goal),"changeSets":[]}"#
        }
        let asked = try server.admitted(pull(goal: 2), as: Self.ann)
        guard case .needsNode = server.node.feed.answer(to: asked) else { throw UnexpectedAnswer() }
        for goal: Revision in [2, 3] {
            let answer = try server.process([pull(goal: goal)], as: Self.ann)[0].get()
            #expect(try SyncCoder.decodeAnswer(answer.body).maxRevision == 2)
        }
    }

    @Test("nobody compares with records that he may not see", arguments: StorageKind.all)
    func compares(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("d2", Self.ann)
        try device.exchange(with: server)
        let check = #""check":{"revision":1,"types":[]},"#
        for (principal, lineage) in [
            (Self.ann, device.lineage), (Self.office, try server.lineage(at: 1)),
        ] {
            let text = """
                {"clientId":"c-\(principal.name)","protocol":1,"maxRevision":1,\(check)\
                "lineage":"\(lineage ?? "")","changeSets":[]}
                """
            // The first exchange makes the device known.
            _ = try server.answer(text, as: principal)
            let reader = server.reader()
            guard
                case .answer(let answer) = try reader.answer(
                    to: server.admitted(text, as: principal))
            else { throw UnexpectedAnswer() }
            let isWhole = principal == Self.office
            #expect((try SyncCoder.decodeAnswer(answer.body).check != nil) == isWhole)
        }
    }

    @Test(
        "a pull beside a save in one batch is answered from the new view",
        arguments: StorageKind.all)
    func batched(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("d2", Self.ann)
        try device.exchange(with: server)
        let save = SetText().create("players", "-9", #""name":"New","owner":"ann""#)
        let pull = """
            {"clientId":"d9","maxRevision":1,"lineage":"\(device.lineage ?? "")","changeSets":[]}
            """
        // The first time makes the client id known.
        _ = try server.node.process([server.admitted(pull, as: Self.ann)], now: 5)[0].get()
        let answers = try server.node.process(
            [
                server.admitted(
                    #"{"clientId":"d1","maxRevision":1,"changeSets":[\#(save)]}"#, as: Self.office),
                server.admitted(pull, as: Self.ann),
            ], now: 6)
        let pulled = try SyncCoder.decodeAnswer(answers[1].get().body)
        #expect(pulled.maxRevision == 2 && pulled.changeSets.first?["players"]?.update.count == 1)
    }

    /// Returns the devices with what they have confirmed.
    private static func purges(_ server: TestDataSet) throws -> [String] {
        try DevicePurges(prefix: "martlet_").list { query in
            try server.rows(query).split(separator: "\n").map { line in
                line.split(separator: "|", omittingEmptySubsequences: false)
                    .map { $0 == "-" ? nil : String($0) }
            }
        }.map { device in
            let records = device.confirmed.map { "\($0.records) \($0.hash)" } ?? "nothing"
            return "\(device.clientID) \(device.state.rawValue), \(records), \(device.hidden)"
        }
    }

    @Test("what devices confirm is kept, device by device", arguments: StorageKind.all)
    func confirmed(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let devices = [ViewedDevice("a1", Self.ann), ViewedDevice("a2", Self.ann)]
        func confirm(
            _ index: Int, _ count: Int, as principal: Principal = Self.ann,
            revision: Revision? = nil
        ) throws -> Result<PreparedAnswer, Problem> {
            let device = devices[index]
            let text = """
                {"clientId":"\(device.name)","maxRevision":\(device.revision),\
                "lineage":"\(device.lineage ?? "")","purged":{"view":\(device.view ?? 0),\
                "revision":\(revision ?? device.revision),"removed":[\(count),"00000000000000ff"]},\
                "changeSets":[]}
                """
            return try server.process([text], as: principal)[0]
        }
        for index in devices.indices {
            try devices[index].exchange(with: server)
            _ = try confirm(index, 0).get()
        }
        let sum = "00000000000000ff"
        #expect(
            try Self.purges(server).prefix(2) == [
                "a1 confirmed, 0 \(sum), 0", "a2 confirmed, 0 \(sum), 0",
            ])
        try server.send(
            SetText().update("players", "1", #""revision":1,"owner":"bob""#), from: "d9",
            as: Self.office)
        try devices[0].exchange(with: server)
        _ = try confirm(0, 1).get()
        #expect(
            try Self.purges(server).prefix(2) == [
                "a1 confirmed, 1 \(sum), 0", "a2 waits, 0 \(sum), 1",
            ])
        // Neither somebody else's word counts, nor one about what is to come.
        let stranger = try confirm(1, 9, as: Principal(name: "b", user: "bob"))
        guard case .failure(let problem) = stranger else {
            Issue.record("somebody else confirmed")
            return
        }
        #expect(problem.kind == "clientBound")
        _ = try confirm(1, 9, revision: 99).get()
        try server.restart()
        try server.secure(by: Self.rules)
        #expect(try Self.purges(server)[1] == "a2 waits, 0 \(sum), 1")
        try devices[1].exchange(with: server)
        _ = try confirm(1, 1).get()
        #expect(try Self.purges(server)[1] == "a2 confirmed, 1 \(sum), 0")
    }

    @Test(
        "a device that got rows and never came again is listed, and waits",
        arguments: StorageKind.all)
    func neverAgain(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        func names() throws -> [String] {
            try Self.purges(server).map { String($0.prefix { $0 != "," }) }
        }
        let before = try names()
        // One whose user sees everything, and a program that is no device.
        try ViewedDevice("o1", Self.office).exchange(with: server)
        _ = try server.process([#"{"maxRevision":0,"changeSets":[]}"#], as: Self.ann)[0].get()
        // One that had asked before there were policies.
        try server.secure(by: nil)
        let early = ViewedDevice("a1", Self.ann)
        try early.exchange(with: server)
        #expect(try names() == before)
        try server.secure(by: Self.rules)
        try ViewedDevice("a2", Self.ann).exchange(with: server, rounds: 1)
        #expect(try names().filter { !before.contains($0) } == ["a2 waits"])
        early.lie(revision: 0, lineage: nil)
        try early.exchange(with: server, rounds: 1)
        #expect(try names().filter { !before.contains($0) } == ["a1 waits", "a2 waits"])
        // Memory answers it only now.
        let text = """
            {"clientId":"a3","protocol":1,"maxRevision":\(early.revision),\
            "lineage":"\(early.lineage ?? "")","changeSets":[]}
            """
        let request = try server.admitted(text, as: Self.ann)
        guard case .needsNode = server.node.feed.answer(to: request) else {
            Issue.record("memory answered a device that is listed nowhere")
            return
        }
        server.node.devicesPerUser = 2
        let tooMany = try server.process([text], as: Self.ann)[0]
        guard case .failure(let problem) = tooMany else {
            Issue.record("a device that cannot be listed got rows")
            return
        }
        #expect(problem.kind == "tooManyDevices")
    }

    @Test("without policies, devices get entries as before", arguments: StorageKind.all)
    func lifted(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("d2", Self.ann)
        try device.exchange(with: server)
        #expect(device.lineage?.contains("-v") == true)
        try server.secure(by: nil)
        try device.exchange(with: server)
        #expect(device.records["players"]?.count == 2)
        #expect(device.lineage == (try server.lineage(at: server.node.head.revision)))
        try server.send(SetText().create("players", "-9", #""name":"N""#), from: "d9")
        try device.exchange(with: server)
        #expect(!device.heard.contains("difference"))
        #expect(device.records["players"]?.count == 3)
    }
}
