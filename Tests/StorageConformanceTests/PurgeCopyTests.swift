import MartletModel
import MartletProtocol
import MartletRules
import SetTexts
import Testing

@testable import MartletServerCore

/// Tests of confirmations of devices whose files were restored from older copies, and of answers that are
/// sent after records have left their view.
@Suite("Confirmations of older copies")
struct PurgeCopyTests {
    private static let schema = """
        CREATE TABLE players (id INTEGER PRIMARY KEY, name TEXT, owner TEXT);
        CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);
        """
    private static let rules = """
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY notes ON notes TO office USING (true);
        CREATE POLICY named ON players FOR SELECT USING (name LIKE martlet_claim('names'));
        """
    private static let office = Principal(name: "o", user: "olga", roles: ["office"])

    /// Ann, who sees the players whose names begin so.
    private static func ann(_ names: String) -> Principal {
        Principal(name: "ann", user: "ann", claims: ["names": "\(names)%"])
    }

    /// A server with the players Pia (1), Quin (2) and Pam (3), and Ann's device, which has confirmed them.
    private static func server(
        _ kind: StorageKind
    ) async throws -> (server: TestDataSet, device: ViewedDevice) {
        let server = try await TestDataSet(kind, schema)
        try server.secure(by: rules)
        var set = SetText()
        for (id, name) in [(-1, "Pia"), (-2, "Quin"), (-3, "Pam")] {
            set = set.create("players", "\(id)", #""name":"\#(name)""#)
        }
        try server.send(set, as: office)
        let device = ViewedDevice("a1", ann("P"))
        try device.exchange(with: server)
        try confirm(device, to: server)
        #expect(try state(server) == "confirmed, 0")
        return (server, device)
    }

    private static func rename(
        _ id: Int, to name: String, at revision: Revision, _ server: TestDataSet
    ) throws {
        try server.send(
            SetText().update("players", "\(id)", #""revision":\#(revision),"name":"\#(name)""#),
            as: office)
    }

    /// A request of a device, with a confirmation if `confirms`.
    private static func text(
        _ device: ViewedDevice, at revision: Revision, _ lineage: String?,
        confirms confirmed: Revision? = nil
    ) -> String {
        let purged = confirmed.map {
            """
            "purged":{"view":\(device.view ?? 0),"revision":\($0),"removed":[0,"0000000000000000"]},
            """
        }
        return """
            {"clientId":"\(device.name)","protocol":1,"maxRevision":\(revision),\
            "lineage":"\(lineage ?? "")",\(purged ?? "")"changeSets":[]}
            """
    }

    private static func confirm(_ device: ViewedDevice, to server: TestDataSet) throws {
        let text = text(
            device, at: device.revision, device.lineage, confirms: device.revision)
        _ = try server.process([text], as: device.principal)[0].get()
    }

    /// The state of Ann's device, and how many records it may have that are hidden from her.
    private static func state(_ server: TestDataSet) throws -> String? {
        try DevicePurges(prefix: "martlet_").list { query in
            try server.rows(query).split(separator: "\n").map { line in
                line.split(separator: "|", omittingEmptySubsequences: false)
                    .map { $0 == "-" ? nil : String($0) }
            }
        }.first { $0.clientID == "a1" }.map { "\($0.state.rawValue), \($0.hidden)" }
    }

    /// Expects that neither memory nor a reader of the log answers a request.
    private static func expectForNode(
        _ text: String, as principal: Principal, _ server: TestDataSet,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let request = try server.admitted(text, as: principal)
        if case .answer = server.node.feed.answer(to: request) {
            Issue.record("memory answered", sourceLocation: location)
        }
        if case .problem = server.node.feed.answer(to: request) {
            Issue.record("memory refused", sourceLocation: location)
        }
        guard case .needsNode = server.reader().answer(to: request) else {
            Issue.record("a reader answered", sourceLocation: location)
            return
        }
    }

    @Test(
        "a device that names an older revision than it confirmed waits, also if it gets no answer",
        arguments: StorageKind.all)
    func older(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        let (revision, lineage) = (device.revision, device.lineage)
        try Self.rename(1, to: "Zia", at: 1, server)
        try device.exchange(with: server)
        try Self.confirm(device, to: server)
        #expect(try Self.state(server) == "confirmed, 0")
        // An older copy of the file asks, and its answer is lost.
        let old = Self.text(device, at: revision, lineage)
        try Self.expectForNode(old, as: device.principal, server)
        _ = try server.process([old], as: device.principal)[0].get()
        #expect(try Self.state(server) == "waits, 1")
        try server.restart()
        try server.secure(by: Self.rules)
        #expect(try Self.state(server) == "waits, 1")
        // The device itself comes again, and has confirmed before.
        try device.exchange(with: server)
        #expect(try Self.state(server) == "waits, 1")
        // The copy gets its answer.
        device.lie(revision: revision, lineage: lineage)
        try device.exchange(with: server)
        #expect(device.heard.contains(#""hidden":[1]"#))
        // It has what it names, whatever it says.
        let early = Self.text(device, at: revision, lineage, confirms: device.revision)
        _ = try server.process([early], as: device.principal)[0].get()
        #expect(try Self.state(server) == "waits, 1")
        try Self.confirm(device, to: server)
        #expect(try Self.state(server) == "confirmed, 0")
    }

    @Test(
        "a copy from which no record has left the view changes nothing",
        arguments: StorageKind.all)
    func nothingLeft(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        let (revision, lineage) = (device.revision, device.lineage)
        try Self.rename(2, to: "Pit", at: 1, server)
        try server.send(SetText().delete("players", "3", #""revision":1"#), as: Self.office)
        try device.exchange(with: server)
        try Self.confirm(device, to: server)
        let old = Self.text(device, at: revision, lineage)
        _ = try server.process([old], as: device.principal)[0].get()
        #expect(try Self.state(server) == "confirmed, 0")
    }

    @Test("another history counts, and another user's request does not", arguments: StorageKind.all)
    func otherHistory(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        let other = "\(String(repeating: "0", count: 64))-v\(device.view ?? 0)"
        for (revision, kind) in [(device.revision, "lineage"), (99, "revisionAhead")] {
            let text = Self.text(device, at: revision, other)
            let stranger = Principal(name: "b", user: "bob", claims: ["names": "P%"])
            #expect(try server.problem(text, as: stranger) != nil)
            #expect(try Self.state(server) == "confirmed, 0")
            try Self.expectForNode(text, as: device.principal, server)
            #expect(try server.problem(text, as: device.principal)?.kind == kind)
            #expect(try Self.state(server) == "waits, 0")
            // Nothing is left to note.
            let request = try server.admitted(text, as: device.principal)
            guard case .problem(let problem) = server.reader().answer(to: request) else {
                Issue.record("only the writer answers")
                return
            }
            #expect(problem.kind == kind)
            try Self.confirm(device, to: server)
            #expect(try Self.state(server) == "confirmed, 0")
        }
    }

    @Test("a copy with the records of another view waits", arguments: StorageKind.all)
    func otherView(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        let (revision, lineage) = (device.revision, device.lineage)
        device.principal = Self.ann("Q")
        try device.exchange(with: server)
        #expect(try Self.state(server) == "waits, 0")
        try Self.confirm(device, to: server)
        #expect(try Self.state(server) == "confirmed, 0")
        for confirmed in [nil, device.revision] {
            let text = Self.text(device, at: revision, lineage, confirms: confirmed)
            _ = try server.process([text], as: device.principal)[0].get()
            #expect(try Self.state(server) == "waits, 0")
            try Self.confirm(device, to: server)
            #expect(try Self.state(server) == "confirmed, 0")
        }
    }

    // MARK: - Restored servers

    /// Has the data set be one that was restored, and expects that Ann's device waits.
    private static func restore(_ server: TestDataSet) throws {
        let prefix = server.kind.isPostgres ? "_martlet." : "martlet_"
        try server.execute(ViewScan.retirement(prefix: prefix))
        try server.restart()
        try server.secure(by: rules)
        #expect(try state(server) == "waits, 0")
    }

    @Test(
        "after a restore, a device waits until it has confirmed another view, and needs no row for it",
        arguments: StorageKind.all)
    func restored(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        let old = device.view
        // Restored twice is no different.
        for _ in 0..<2 { try Self.restore(server) }
        let plain = Self.text(device, at: device.revision, device.lineage)
        try Self.expectForNode(plain, as: device.principal, server)
        try device.exchange(with: server)
        #expect(device.view != old && device.beginnings == 0)
        #expect(!device.heard.contains("Pia"))
        #expect(try Self.state(server) == "waits, 0")
        try Self.confirm(device, to: server)
        #expect(try Self.state(server) == "confirmed, 0")
    }

    @Test(
        "after a restore, a device has nothing that its view showed only in between",
        arguments: StorageKind.all)
    func betweenBackupAndRestore(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        // The log has this revision, and the copy was made before a device asked for it.
        try Self.rename(2, to: "Pip", at: 1, server)
        let lineage = try #require(try server.lineage(at: 2))
        let ahead = "\(lineage)-v\(device.view ?? 0)"
        try Self.restore(server)
        try Self.rename(2, to: "Quin", at: 2, server)
        // Another device of hers brings her view up to date.
        let other = ViewedDevice("a2", device.principal)
        try other.exchange(with: server)
        device.lie(revision: 2, lineage: ahead)
        try device.exchange(with: server)
        #expect(device.beginnings == 1)
        #expect(device.records == other.records)
        #expect(try Self.state(server) == "waits, 0")
        try Self.confirm(device, to: server)
        #expect(try Self.state(server) == "confirmed, 0")
    }

    @Test(
        "a server that finds another log in place of its own lets no confirmation count",
        arguments: StorageKind.all)
    func otherLog(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        server.isCompared = false
        if kind.isPostgres {
            // The log goes back, as that of a standby which lagged.
            try server.send(SetText().create("notes", "-9", #""text":"N""#), as: Self.office)
            try server.execute(
                """
                BEGIN; DELETE FROM _martlet.log WHERE revision > 1; UPDATE _martlet.dataset SET revision = 1, \
                hash = (SELECT hash FROM _martlet.log WHERE revision = 1); COMMIT
                """)
        } else {
            server.node.feed.meetOtherLog()
        }
        #expect(try Self.state(server) == "confirmed, 0")
        _ = server.node.takeExternalWrites(now: server.now)
        #expect(server.node.takeFault() == nil)
        #expect(try Self.state(server) == "waits, 0")
        try device.exchange(with: server)
        try Self.confirm(device, to: server)
        #expect(try Self.state(server) == "confirmed, 0")
        // It is noted once.
        _ = server.node.takeExternalWrites(now: server.now)
        #expect(try Self.state(server) == "confirmed, 0")
    }

    @Test("another process knows what a device has confirmed", arguments: [StorageKind.postgres])
    func otherProcess(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        server.isCompared = false
        let (revision, lineage) = (device.revision, device.lineage)
        let other = try server.otherNode()
        other.policies = server.policies
        let known = try server.admitted(
            Self.text(device, at: revision, lineage), as: device.principal)
        _ = try other.process([known], now: server.now)[0].get()
        // A process that met the device answers it if it has confirmed nothing newer.
        guard case .answer = server.reader(of: other.feed).answer(to: known) else {
            Issue.record("only the writer answers")
            return
        }
        try Self.rename(1, to: "Zia", at: 1, server)
        try device.exchange(with: server)
        try Self.confirm(device, to: server)
        guard case .needsNode = server.reader(of: other.feed).answer(to: known) else {
            Issue.record("the other process answered an older copy")
            return
        }
    }

    // MARK: - Answers in pieces

    @Test(
        "the rest of an answer may be sent until a record has left the view, or the view is another one",
        arguments: StorageKind.all)
    func rest(kind: StorageKind) async throws {
        let (server, device) = try await Self.server(kind)
        let person = device.principal
        let pull = Self.text(device, at: device.revision, device.lineage)
        let made = try server.process([pull], as: person)[0].get().view
        func shows(_ view: AnsweredView, to person: Principal = person) throws -> AnsweredView? {
            try server.node.stillShows(view, to: person, now: server.now)
        }
        #expect(made.number == device.view && made.revision == 1)
        #expect(try shows(made) == made)
        #expect(server.node.feed.stillShows(made, to: person) == !kind.isPostgres)
        // It does not concern her.
        try server.send(SetText().create("notes", "-9", #""text":"N""#), as: Self.office)
        #expect(server.node.feed.stillShows(made, to: person) == !kind.isPostgres)
        // Another record enters the view.
        try Self.rename(2, to: "Pet", at: 1, server)
        #expect(!server.node.feed.stillShows(made, to: person))
        let later = try #require(try shows(made))
        #expect(later.number == made.number && later.revision == 3)
        #expect(server.node.feed.stillShows(later, to: person) == !kind.isPostgres)
        #expect(try shows(later, to: Self.ann("Q")) == nil)
        #expect(!server.node.feed.stillShows(later, to: Self.ann("Q")))
        // A record leaves it.
        try Self.rename(1, to: "Zia", at: 1, server)
        #expect(!server.node.feed.stillShows(later, to: person))
        #expect(try shows(later) == nil)
        let next = try server.process([pull], as: person)[0].get().view
        #expect(next.revision == 4)
        #expect(try shows(next) == next)
        // Answers to people who see everything say so.
        let whole = try server.process(
            [#"{"maxRevision":0,"changeSets":[]}"#], as: Self.office)
        #expect(try whole[0].get().view == AnsweredView())
    }
}
