import MartletModel
import MartletProtocol
import MartletRules
import SetTexts
import Testing

@testable import MartletServerCore

/// Tests of answers to devices whose user got another view.
@Suite("Changes of views")
struct ViewMoveTests {
    private static let schema = """
        CREATE TABLE players (id INTEGER PRIMARY KEY, name TEXT, owner TEXT);
        """
    private static let rules = """
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY named ON players FOR SELECT USING (name LIKE martlet_claim('names'));
        """
    private static let office = Principal(name: "o", user: "olga", roles: ["office"])

    /// Somebody who sees the players whose names begin so.
    private static func person(_ name: String, _ names: String) -> Principal {
        Principal(name: name, user: name, claims: ["names": "\(names)%"])
    }

    /// A server with the players Pia and Quin.
    private static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.secure(by: rules)
        try add(["Pia", "Quin"], to: server)
        return server
    }

    private static func add(_ names: [String], to server: TestDataSet) throws {
        var set = SetText()
        for (index, name) in names.enumerated() {
            // A device uses a temporary id once.
            let id = -Int64(index + 1) - 100 * server.node.head.revision
            set = set.create("players", "\(id)", #""name":"\#(name)""#)
        }
        try server.send(set, as: office)
    }

    @Test(
        "a device is not told the ids of records that came into its former view after its user had it",
        arguments: StorageKind.all)
    func unsent(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let (device, other) = (
            ViewedDevice("a1", Self.person("ann", "P")), ViewedDevice("b1", Self.person("bob", "P"))
        )
        try device.exchange(with: server)
        try Self.add(["Pam"], to: server)
        // The type view of both is computed at revision 2, and Ann was not given it there.
        try other.exchange(with: server)
        #expect(other.records["players"]?.count == 2)
        device.principal = Self.person("ann", "Q")
        try device.exchange(with: server)
        #expect(device.beginnings == 0)
        #expect(device.records["players"]?.keys.map(\.description) == ["2"])
        #expect(device.heard.contains(#""delete":[1]"#), "\(device.heard)")
    }

    @Test(
        "a device that was cut within a revision loses the records of that revision, too",
        arguments: StorageKind.all)
    func cut(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        // Storages order ids in ways of their own, so they cut at other records.
        server.isCompared = false
        let device = ViewedDevice("a1", Self.person("ann", "P"))
        try device.exchange(with: server)
        try Self.add((0..<20).map { "Pam\($0)" }, to: server)
        try server.restart(answerBytes: 80, partBytes: 1)
        try device.exchange(with: server, rounds: 1)
        #expect(!device.isUpToDate && device.revision == 1)
        #expect((2..<20).contains(device.records["players"]?.count ?? 0))
        device.principal = Self.person("ann", "Q")
        try device.exchange(with: server)
        #expect(device.beginnings == 0)
        #expect(device.records["players"]?.keys.map(\.description) == ["2"])
    }

    @Test(
        "a device that comes to a view gets no record that had left it, and is not told its id",
        arguments: StorageKind.all)
    func leftBefore(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let bob = ViewedDevice("b1", Self.person("bob", "P"))
        try bob.exchange(with: server)
        #expect(bob.records["players"]?.keys.map(\.description) == ["1"])
        try server.send(
            SetText().update("players", "1", #""revision":1,"name":"Canary""#), as: Self.office)
        try bob.exchange(with: server)
        #expect(bob.records["players"] == nil)
        try Self.add(["Rob"], to: server)
        let ann = ViewedDevice("a1", Self.person("ann", "R"))
        try ann.exchange(with: server)
        ann.principal = Self.person("ann", "P")
        try ann.exchange(with: server) { #expect(!$0.heard.contains("Canary")) }
        #expect(ann.beginnings == 0 && ann.records["players"] == nil)
        // Her next device says that it had the view when the record was in it.
        let hash = try #require(try server.lineage(at: 1))
        let liar = ViewedDevice("a2", Self.person("ann", "R"))
        liar.lie(revision: 1, lineage: "\(hash)-v\(ann.view ?? 0)")
        try liar.exchange(with: server) {
            #expect(!$0.heard.contains(#/"delete":\[1[,\]]/#) && !$0.heard.contains("Canary"))
        }
    }

    @Test(
        "a deleted record of a part is hidden, whether or not it left first, and one of a whole type is not",
        arguments: StorageKind.all, [false, true])
    func deleted(kind: StorageKind, leavesFirst: Bool) async throws {
        let server = try await TestDataSet(
            kind, Self.schema + "CREATE TABLE clubs (id INTEGER PRIMARY KEY, name TEXT);")
        try server.secure(
            by: Self.rules + """
                CREATE POLICY every ON clubs USING (true);
                CREATE POLICY add ON clubs TO office USING (true);
                """)
        try server.send(
            SetText().create("players", "-1", #""name":"Pia""#)
                .create("clubs", "-1", #""name":"Owls""#), as: Self.office)
        let device = ViewedDevice("a1", Self.person("ann", "P"))
        try device.exchange(with: server)
        #expect(device.records.count == 2)
        if leavesFirst {
            try server.send(
                SetText().update("players", "1", #""revision":1,"name":"Quin""#), as: Self.office)
        }
        let revision = leavesFirst ? 2 : 1
        try server.send(
            SetText().delete("players", "1", #""revision":\#(revision)"#)
                .delete("clubs", "1", #""revision":1"#), as: Self.office)
        try device.exchange(with: server)
        #expect(device.records.isEmpty)
        let answer = try SyncCoder.decodeAnswer(Array(device.heard.utf8))
        let types = try #require(answer.changeSets.first).types
        #expect(Set(types.map(\.name)) == ["players", "clubs"])
        for changes in types {
            #expect(changes.delete == [.integer(1)])
            #expect(changes.hidden == (changes.name == "players" ? [.integer(1)] : []))
        }
    }

    @Test(
        "the value of a new column arrives for the records of the view", arguments: StorageKind.all)
    func newColumn(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("a1", Self.person("ann", "P"))
        try device.exchange(with: server)
        try Self.add(["Rob"], to: server)
        // The storage notes records like this if a new column has a value that was computed.
        let (table, quote) =
            kind.isPostgres ? ("_martlet.announced", "'") : ("martlet_announced", "")
        let type = try server.rows("SELECT number FROM martlet_types WHERE name = 'players'")
        for id in [1, 2] {
            try server.execute(
                "INSERT INTO \(table) VALUES (2, \(type), \(quote)\(id)\(quote))")
        }
        try device.exchange(with: server)
        #expect(device.heard.contains("Pia") && !device.heard.contains("Quin"))
    }

    // MARK: - Listeners

    private static func heard(
        _ request: DeltaRequest, _ server: TestDataSet
    ) throws -> (batch: DeltaBatchBytes, text: String) {
        guard case .batch(let batch) = server.reader().deltas(request) else {
            throw UnexpectedAnswer()
        }
        return (batch, String(decoding: batch.json, as: UTF8.self))
    }

    @Test(
        "a listener who sees a part is told the lineage that it named, or none",
        arguments: StorageKind.all)
    func listenersLineage(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("a1", Self.person("ann", "P"))
        try device.exchange(with: server)
        var request = DeltaRequest(principal: device.principal, since: 1)
        request.clientID = "a1"
        let plain = try Self.heard(request, server)
        #expect(plain.batch.isEmpty && !plain.text.contains("lineage"), "\(plain.text)")
        let lineage = try #require(device.lineage)
        request.lineage = lineage
        let named = try Self.heard(request, server)
        #expect(named.batch.isEmpty && named.text.contains(#""lineage":"\#(lineage)""#))
        // A device that is within a difference has not all of the revision.
        request.lineage = lineage + "-rows"
        #expect(try Self.heard(request, server).batch.isBehind)
    }

    @Test(
        "a listener who saw a part gets no entries after an empty batch, whatever it may see then",
        arguments: StorageKind.all)
    func listenersRights(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let device = ViewedDevice("a1", Self.person("ann", "P"))
        try device.exchange(with: server)
        let request = DeltaRequest(principal: device.principal, since: 1)
        let empty = try Self.heard(request, server)
        #expect(empty.batch.isEmpty)
        var (noted, advanced) = (request, request)
        noted.note(empty: empty.batch)
        advanced.advance(past: empty.batch)
        try server.secure(by: nil)
        try Self.add(["Rob"], to: server)
        for request in [noted, advanced] {
            let batch = try Self.heard(request, server)
            #expect(batch.batch.isBehind && !batch.text.contains("Rob"), "\(batch.text)")
            #expect(server.node.feed.madeDeltas(request) == nil)
        }
    }

    @Test(
        "a listener does not get the own sets of another user's device", arguments: StorageKind.all)
    func listenersDevice(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(
            SetText("s1", sequence: 1).create("players", "-900", #""name":"Rob""#), from: "o1",
            as: Self.office)
        var request = DeltaRequest(
            principal: Principal(name: "p", user: "pat", roles: ["office"]), since: 0)
        request.clientID = "o1"
        guard case .problem(let problem) = server.reader().deltas(request) else {
            Issue.record("somebody else listens as the office's device")
            return
        }
        #expect(problem.kind == "clientBound")
    }

    // MARK: - Numbers

    @Test(
        "a view gets a number that is not below the time, and higher than all before",
        arguments: StorageKind.all)
    func numbers(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        func view(_ names: String) throws -> Int64 {
            let device = ViewedDevice("p-\(names)", Self.person("p-\(names)", names))
            try device.exchange(with: server)
            return try #require(device.view)
        }
        server.now = 1_800_000_000_000
        let first = try view("P")
        #expect(first >= 1_800_000_000_000)
        // The clock is set back.
        server.now = 1_700_000_000_000
        let second = try view("Q")
        #expect(second == first + 1)
        #expect(try view("P") == first)
    }

    // MARK: - Removal

    @Test(
        "a view that nobody was given since the log's floor is removed, and its device begins again",
        arguments: StorageKind.all)
    func removed(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let (absent, present) = (
            ViewedDevice("a1", Self.person("ann", "P")), ViewedDevice("b1", Self.person("bob", "Q"))
        )
        try absent.exchange(with: server)
        try Self.confirm(absent, to: server)
        for number in 0..<6 { try Self.add(["Pam\(number)"], to: server) }
        try present.exchange(with: server)
        try Self.confirm(present, to: server)
        func counts() throws -> String {
            try ["views", "type_views", "members", "given"].map {
                try server.rows("SELECT count(*) FROM martlet_\($0)").trimmed
            }.joined(separator: " ")
        }
        // Ann and Bob have a view, and one of a type. They and their devices were given them.
        #expect(try counts() == "2 2 2 6")
        // Memory still answers Ann's device.
        server.compact(keeping: 2)
        #expect(try counts() == "2 2 2 6")
        try server.restart()
        try Self.add(["Pat"], to: server)
        server.compact(keeping: 2)
        // The last view that Ann and her device were given stays noted.
        #expect(try counts() == "1 1 1 5")
        let states = try Self.states(server)
        #expect(states == ["user:ann waits", "user:bob confirmed", "user:olga sees all"])
        try present.exchange(with: server)
        #expect(present.beginnings == 0 && present.records["players"]?.count == 1)
        let old = try #require(absent.view)
        try absent.exchange(with: server)
        #expect(absent.beginnings == 1 && absent.records["players"]?.count == 8)
        #expect(try #require(absent.view) > old)
    }

    @Test(
        "a program that names no lineage is told to begin again, if its user's view was removed",
        arguments: StorageKind.all)
    func removedUnnamed(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let ann = Self.person("ann", "P")
        func pull(_ revision: Revision) -> String {
            #"{"maxRevision":\#(revision),"changeSets":[]}"#
        }
        func problem(_ revision: Revision) throws -> String? {
            try server.problem(pull(revision), as: ann)?.kind
        }
        #expect(try server.text(pull(0), as: ann).contains("Pia"))
        for number in 0..<6 { try Self.add(["Pam\(number)"], to: server) }
        try server.restart()
        // Her view is there, so she is told what changed.
        #expect(try server.text(pull(1), as: ann).contains("Pam0"))
        try server.send(
            SetText().update("players", "1", #""revision":1,"name":"Zia""#), as: Self.office)
        for number in 0..<3 { try Self.add(["Pat\(number)"], to: server) }
        try server.restart()
        server.compact(keeping: 2)
        #expect(try server.rows("SELECT count(*) FROM martlet_views").trimmed == "0")
        // Nobody knows that Pia left her view. Another person who has it now changes nothing.
        try ViewedDevice("b1", Self.person("bob", "P")).exchange(with: server)
        #expect(try problem(7) == "view")
        #expect(try problem(7) == "view")
        // No view of hers was removed, as far as the server knows.
        #expect(try server.problem(pull(7), as: Self.person("cleo", "P")) == nil)
        let whole = try server.text(pull(0), as: ann)
        #expect(whole.contains("Pam0") && whole.contains("Pat0") && !whole.contains("Zia"))
        #expect(try problem(server.node.head.revision) == nil)
        // Parts of what she was sent may follow.
        #expect(try problem(3) == nil)
    }

    private static func confirm(_ device: ViewedDevice, to server: TestDataSet) throws {
        let text = """
            {"clientId":"\(device.name)","maxRevision":\(device.revision),\
            "lineage":"\(device.lineage ?? "")","purged":{"view":\(device.view ?? 0),\
            "revision":\(device.revision),"removed":[0,"0000000000000000"]},"changeSets":[]}
            """
        _ = try server.process([text], as: device.principal)[0].get()
    }

    private static func states(_ server: TestDataSet) throws -> [String] {
        try DevicePurges(prefix: "martlet_").list { query in
            try server.rows(query).split(separator: "\n").map { line in
                line.split(separator: "|", omittingEmptySubsequences: false)
                    .map { $0 == "-" ? nil : String($0) }
            }
        }.map { "\($0.principal) \($0.state.rawValue)" }
    }

    /// Lets a device fetch all rows, with the rights that its user has now.
    private static func begin(
        _ device: ViewedDevice, as principal: Principal, with server: TestDataSet
    ) throws {
        device.principal = principal
        device.lie(revision: 0, lineage: nil)
        try device.exchange(with: server)
    }

    @Test(
        "a device that was sent rows of another view waits, also if memory has the answer",
        arguments: StorageKind.all)
    func confirmedBefore(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let chief = Principal(name: "c", user: "ann", roles: ["office"])
        let (seesP, seesQ) = (Self.person("ann", "P"), Self.person("ann", "Q"))
        let (device, other) = (ViewedDevice("a1", seesP), ViewedDevice("a2", seesQ))
        for device in [device, other] {
            try device.exchange(with: server)
            try Self.confirm(device, to: server)
        }
        let head = server.node.head
        #expect(
            try Self.states(server) == [
                "user:ann confirmed", "user:ann confirmed", "user:olga sees all",
            ])
        try Self.begin(device, as: seesQ, with: server)
        #expect(device.heard.contains("Quin"))
        #expect(try Self.states(server)[0] == "user:ann waits")
        // An answer with the earlier view may never have arrived.
        try Self.begin(device, as: seesP, with: server)
        #expect(try Self.states(server)[0] == "user:ann waits")
        try Self.confirm(device, to: server)
        #expect(try Self.states(server)[0] == "user:ann confirmed")
        // The same with all rights, and back, with both on one revision.
        try Self.begin(device, as: chief, with: server)
        #expect(device.heard.contains("Pia") && device.heard.contains("Quin"))
        #expect(try Self.states(server)[0] == "user:ann sees all")
        for principal in [seesQ, seesP, seesQ] {
            try Self.begin(device, as: principal, with: server)
            #expect(try Self.states(server)[0] == "user:ann waits")
            try Self.confirm(device, to: server)
            #expect(try Self.states(server)[0] == "user:ann confirmed")
        }
        #expect(try Self.states(server)[1] == "user:ann confirmed")
        #expect(server.node.head == head)
        // It has confirmed, and has nothing, so that its confirmation counts up to there.
        try Self.begin(device, as: seesQ, with: server)
        #expect(try Self.states(server)[0] == "user:ann confirmed")
        // Memory does not know what other processes have given to a device that has nothing.
        let request = try server.admitted(
            #"{"clientId":"a1","maxRevision":0,"changeSets":[]}"#, as: seesQ)
        var isForNode = false
        if case .needsNode = server.node.feed.answer(to: request) { isForNode = true }
        #expect(isForNode == kind.isPostgres)
    }

    @Test(
        "a device that is told to begin again counts as given the view with which it will",
        arguments: StorageKind.all)
    func toldToBegin(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let chief = Principal(name: "c", user: "ann", roles: ["office"])
        let device = ViewedDevice("a1", chief)
        try device.exchange(with: server)
        try Self.confirm(device, to: server)
        #expect(try Self.states(server)[0] == "user:ann sees all")
        device.principal = Self.person("ann", "P")
        try device.exchange(with: server, rounds: 1)
        #expect(device.beginnings == 1)
        #expect(try Self.states(server)[0] == "user:ann waits")
    }

    @Test("members of removed views go in steps", arguments: StorageKind.all)
    func steps(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try ViewedDevice("a1", Self.person("ann", "P")).exchange(with: server)
        let many = try server.rows("SELECT number FROM martlet_type_views").trimmed
        // SQLite and PostgreSQL both know a WITH that counts.
        try server.execute(
            """
            INSERT INTO \(kind.isPostgres ? "_martlet." : "martlet_")members (view, id, first, moved, shown) \
            WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 8000) \
            SELECT \(many), \(kind.isPostgres ? "i::text" : "i"), 0, 0, \
            \(kind.isPostgres ? "true" : "1") FROM n
            """)
        for number in 0..<4 { try Self.add(["Pam\(number)"], to: server) }
        try server.restart()
        var steps = 0
        repeat { steps += 1 } while !server.node.compact(keeping: 0).isDone
        #expect(steps >= 2)
        #expect(!server.node.hasUnusedViews)
        #expect(try server.rows("SELECT count(*) FROM martlet_members").trimmed == "0")
        #expect(try server.rows("SELECT count(*) FROM martlet_type_views").trimmed == "0")
    }
}

extension String {
    fileprivate var trimmed: String { String(split(separator: "\n").first ?? "") }
}
