import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// What Martlet's own tables hold may be what another version, or a person with a shell, left there.
@Suite("A queue that is not as it was left")
struct DamagedQueueTests {
    @Test(
        "a counter that is gone is not begun again: numbers would be given twice",
        arguments: ["nextSequence", "nextTemporaryID"])
    func lostCounter(name: String) throws {
        let device = try DeviceFixture.withTeams()
        try device.shell("DELETE FROM martlet_state WHERE name = '\(name)'")
        let error = #expect(throws: StoreError.self) {
            try device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        }
        #expect(error?.kind == .inconsistent)
        #expect(error?.message.contains(name) == true)
        #expect(try device.rows("SELECT name FROM teams WHERE id = 1") == [["Falcons"]])
        #expect(try device.store.outboxCount == 0)
    }

    @Test("a stored change that does what this version does not know is not sent as something else")
    func unknownOperation() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        try device.shell("UPDATE martlet_changes SET operation = 9")
        let error = #expect(throws: StoreError.self) { try device.gather() }
        #expect(error?.kind == .inconsistent)
        #expect(try device.store.outboxCount == 1)
    }

    @Test("a stored change of a type without a name is not sent under another")
    func unknownType() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        try device.shell("UPDATE martlet_changes SET type = 99")
        let error = #expect(throws: StoreError.self) { try device.gather() }
        #expect(error?.kind == .inconsistent)
        #expect(error?.message.contains("99") == true)
    }

    @Test("a value that cannot be sent is refused with its type, and nothing is queued")
    func unsendableQueuedValue() throws {
        let device = try DeviceFixture.withTeams()
        let change = RecordChange(
            type: 0, id: .integer(-9), operation: .create, before: nil,
            after: ["name": .real(.infinity)])
        let error = #expect(throws: StoreError.self) {
            try device.store.inApplyingTransaction {
                try Outbox(store: device.store.applying).enqueue(
                    [change], identifier: "a", now: 1)
            }
        }
        #expect(error?.kind == .value)
        #expect(error?.message.contains("teams cannot be sent") == true)
        #expect(try device.store.outboxCount == 0)
        #expect(try device.rows("SELECT count(*) FROM martlet_base") == [[0]])
    }

    @Test("a set is not put before another one where both together could not be sent")
    func tooLargeToJoin() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        try device.write { try $0.update("teams", .integer(2), ["name": "Mine too"]) }
        let outbox = Outbox(store: device.store.applying)
        try device.shell("UPDATE martlet_outbox SET bytes = \(Limits.savedSetBytes)")
        try device.store.inApplyingTransaction { try outbox.prependIfItFits(2, to: 1) }
        #expect(try device.store.outboxCount == 2)
        try device.shell("UPDATE martlet_outbox SET bytes = 100")
        try device.store.inApplyingTransaction { try outbox.prependIfItFits(2, to: 1) }
        #expect(try device.store.outboxCount == 1)
        #expect(
            try device.gather().changeSets.map { $0.types[0].update }
                == [[.integer(1), .integer(2)]])
    }

    @Test("a receipt of an outcome this version does not know is passed over")
    func unknownOutcome() throws {
        let device = try DeviceFixture.withTeams()
        var sent: [String] = []
        for name in ["One", "Two"] {
            try device.write { try $0.update("teams", .integer(1), ["name": .text(name)]) }
            let own = try #require(try device.gather().changeSets[0].identifier)
            let revision = try device.store.revision + 1
            try device.apply(
                [
                    .entry(
                        revision, own: own,
                        .updated("teams", 1, at: revision, ["name": .text(name)]))
                ], reaching: revision)
            sent.append(own)
        }
        try device.shell(
            "UPDATE martlet_receipts SET outcome = 'pondered' WHERE identifier = '\(sent[0])'")
        #expect(try device.store.receipts(limit: 9).map(\.identifier) == [sent[1]])
    }

    @Test("a part that was fetched and is gone stops the difference, with what it led to")
    func lostPart() throws {
        let device = try DeviceFixture.withTeams()
        let inbox = Inbox(store: device.store.applying)
        try device.store.inApplyingTransaction {
            let set = DeviceFixture.difference(
                5, .updated("teams", 1, at: 5, ["name": "Hawks"]))
            try inbox.add(set, SyncCoder.encode(set))
        }
        let part = try #require(try inbox.parts().first)
        #expect(try inbox.content(of: part).revision == 5)
        try device.shell("DELETE FROM martlet_inbox")
        let error = #expect(throws: StoreError.self) { try inbox.content(of: part) }
        #expect(error?.kind == .inconsistent)
    }

    @Test("while one exchange is under way, another is told whose it is")
    func leased() throws {
        let device = try DeviceFixture.withTeams()
        func gather(_ owner: String) throws -> Gathered {
            try device.store.gather(
                owner: owner, lease: 1_000, byteLimit: 1 << 20, includesChanges: true, now: 1_000)
        }
        _ = try gather("one")
        guard case .request = try gather("one") else {
            Issue.record("an owner is kept from going on by its own lease")
            return
        }
        if case .request = try gather("two") {
            Issue.record("two exchange at once")
        }
    }

    @Test("what a shell wrote before any exchange is queued by an opening that changes the tables")
    func capturedBeforeAnyExchange() throws {
        let device = try DeviceFixture()
        try device.shell(
            "INSERT INTO teams(id, name) VALUES ((SELECT id FROM martlet_new_id), 'Falcons')")
        try device.reopen(
            script: DeviceFixture.script.replacing(
                "city TEXT DEFAULT 'Oslo'", with: "city TEXT DEFAULT 'Oslo', motto TEXT"))
        let set = try #require(try device.gather().changeSets.first)
        #expect(set.types[0].entries[0].attributes["name"] == "Falcons")
        #expect(set.timestamp?.hasPrefix("1970-01-01T00:00:00") == true)
    }
}
