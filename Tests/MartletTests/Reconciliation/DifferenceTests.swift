import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Differences")
struct DifferenceTests {
    private func whole(
        _ type: String, _ id: Int64, at revision: Revision, _ attributes: Attributes
    ) -> TypeChanges {
        .updated(type, id, at: revision, attributes)
    }

    @Test("rows are inserted or replaced whole, and what is gone is deleted")
    func rows() throws {
        let device = try DeviceFixture.withTeams()
        var teams = whole("teams", 1, at: 8, ["name": "Hawks"])
        teams.update.append(.integer(5))
        teams.entries.append(
            RecordEntry(
                id: .integer(5), revision: 9, attributes: ["name": "Owls"]))
        teams.delete = [.integer(2), .integer(3)]
        _ = try device.gather()
        try device.apply([DeviceFixture.difference(9, teams)], reaching: 9)
        #expect(
            try device.rows("SELECT id, name, city FROM teams ORDER BY id")
                == [[1, "Hawks", .null], [5, "Owls", .null]])
        #expect(
            try device.rows("SELECT id, revision FROM martlet_records ORDER BY id")
                == [[1, 8], [5, 9]])
        #expect(try device.store.revision == 9)
    }

    @Test("rows that exchange a unique value come in")
    func swap() throws {
        let device = try DeviceFixture.withTeams()
        try device.apply(
            [
                .entry(3, .created("players", 1, at: 3, ["name": "A", "shirt": 1])),
                .entry(4, .created("players", 2, at: 4, ["name": "B", "shirt": 2])),
            ], reaching: 4)
        var players = whole("players", 1, at: 6, ["name": "A", "shirt": 2])
        players.update.append(.integer(2))
        players.entries.append(
            RecordEntry(
                id: .integer(2), revision: 7,
                attributes: ["name": "B", "shirt": 1]))
        _ = try device.gather()
        try device.apply([DeviceFixture.difference(7, players)], reaching: 7)
        #expect(try device.rows("SELECT shirt FROM players ORDER BY id") == [[2], [1]])
        #expect(try device.store.quarantined().isEmpty)
    }

    @Test("own sets beside a difference settle, and do not bring old values back")
    func ownSets() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        let own = try #require(try device.gather().changeSets[0].identifier)
        // Accepted at 3; somebody changed the record again at 8.
        try device.apply(
            [
                DeviceFixture.difference(
                    9, whole("teams", 1, at: 8, ["name": "Theirs", "city": "Rome"])),
                .entry(3, own: own, .updated("teams", 1, at: 3, ["name": "Mine"])),
            ], reaching: 9)
        #expect(try device.rows("SELECT name FROM teams WHERE id = 1") == [["Theirs"]])
        #expect(try device.store.outboxCount == 0)
        #expect(try device.store.receipts(limit: 9).map(\.outcome) == [.accepted])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("an own edit never sent stands on own accepted work, but not on other people's")
    func bases() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "First"]) }
        try device.write { try $0.update("teams", .integer(2), ["name": "Other"]) }
        let sent = try device.gather().changeSets.compactMap(\.identifier)
        try device.write { try $0.update("teams", .integer(1), ["name": "Second"]) }
        try device.write { try $0.update("teams", .integer(2), ["name": "Mine too"]) }
        var teams = whole("teams", 1, at: 3, ["name": "First"])
        teams.update.append(.integer(2))
        teams.entries.append(
            RecordEntry(
                id: .integer(2), revision: 8, attributes: ["name": "Theirs"]))
        try device.apply(
            [
                DeviceFixture.difference(9, teams),
                .entry(3, own: sent[0], .updated("teams", 1, at: 3, ["name": "First"])),
                .entry(4, own: sent[1], .updated("teams", 2, at: 4, ["name": "Other"])),
            ], reaching: 9)
        #expect(
            try device.rows("SELECT name FROM teams ORDER BY id") == [["Second"], ["Theirs"]])
        #expect(try device.store.parked().map(\.reason) == [.stale])
        #expect(try device.gather().changeSets.map { $0.types[0].update } == [[.integer(1)]])
    }

    @Test("of two own sets beside a difference, the verdict on the later one may come first")
    func laterFirst() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        try device.write { try $0.update("teams", .integer(-2), ["city": "Rome"]) }
        let sent = try device.gather().changeSets.compactMap(\.identifier)
        try device.write { try $0.update("teams", .integer(-2), ["name": "Hawks"]) }
        try device.apply(
            [
                DeviceFixture.difference(
                    9, whole("teams", 7, at: 4, ["name": "Falcons", "city": "Rome"])),
                .entry(4, own: sent[1], .updated("teams", 7, at: 4, ["city": "Rome"])),
                .entry(3, own: sent[0], .created("teams", 7, old: -2, at: 3, ["name": "Falcons"])),
            ], reaching: 9)
        #expect(
            try device.rows("SELECT name, city FROM teams WHERE id = 7") == [["Hawks", "Rome"]])
        // It is based on what the device's own later set made of the record.
        #expect(try device.gather().changeSets.map { $0.types[0].entries[0].revision } == [4])
    }

    @Test("an edit on top of a sent one is not refused for what the sent one made")
    func onSent() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["city": "Rome"]) }
        let sent = try device.gather().changeSets.compactMap(\.identifier)
        try device.write { try $0.update("teams", .integer(1), ["name": "Hawks"]) }
        // The verdict comes after what it made of the record.
        let team = whole("teams", 1, at: 4, ["name": "Falcons", "city": "Rome"])
        try device.apply([DeviceFixture.difference(4, team)], reaching: 4)
        #expect(try device.store.parkedCount == 0)
        try device.apply(
            [.entry(4, own: sent[0], .updated("teams", 1, at: 4, ["city": "Rome"]))], reaching: 4)
        #expect(try device.store.parkedCount == 0)
        #expect(try device.store.outboxCount == 1)
        #expect(
            try device.rows("SELECT name, city FROM teams WHERE id = 1") == [["Hawks", "Rome"]])
    }

    @Test("parts are kept until the last comes, across a restart, and applied together")
    func parts() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        let first = DeviceFixture.difference(5, whole("teams", 1, at: 5, ["name": "Hawks"]))
        let isStaged = try device.store.stage(
            [first], reaching: 5, more: true, lineage: "l5", dataSet: "d", owner: "test", now: 1)
        #expect(isStaged)
        #expect(try device.rows("SELECT name FROM teams WHERE id = 1") == [["Falcons"]])
        #expect(try device.store.revision == 2)
        try device.reopen()
        // The stream must not slip in between.
        #expect(
            try device.take(.batch(2, 3, [.delete(3, "teams", "2")])) == "needs exchange")
        let request = try device.gather()
        #expect(request.maxRevision == 5)
        #expect(request.wantsRows)
        #expect(request.lineage == "l5")
        try device.apply(
            [DeviceFixture.difference(9, whole("teams", 2, at: 9, ["name": "Owls"]))],
            reaching: 9)
        #expect(try device.rows("SELECT name FROM teams ORDER BY id") == [["Hawks"], ["Owls"]])
        #expect(try device.store.revision == 9)
        #expect(try device.store.standing.staged == nil)
        #expect(try device.rows("SELECT count(*) FROM martlet_inbox") == [[0]])
    }

    @Test("rows of a part that ends within a revision are as new as that revision")
    func partWithinRevision() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        var teams = whole("teams", 1, at: 3, ["name": "Hawks"])
        teams.delete = [.integer(2)]
        let isStaged = try device.store.stage(
            [DeviceFixture.difference(2, teams)], reaching: 2, more: true, lineage: "l2-rows.1.i2",
            dataSet: "d", owner: "test", now: 1)
        #expect(isStaged)
        try device.write { try $0.update("teams", .integer(1), ["city": "Rome"]) }
        try device.write { try $0.update("teams", .integer(2), ["city": "Bonn"]) }
        let report = try device.apply(
            [DeviceFixture.difference(3, whole("players", 1, at: 3, ["name": "New"]))], reaching: 3)
        #expect(try device.store.parked().map(\.reason) == [.stale, .stale])
        #expect(try device.rows("SELECT id, name, city FROM teams") == [[1, "Hawks", .null]])
        #expect(report.changedTypes == ["teams", "players"])
        #expect(report.removed == ["teams": [.integer(2)]])
    }

    @Test("an answer to another question than the last is not taken for the next part")
    func doubled() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        let part = DeviceFixture.difference(5, whole("teams", 1, at: 5, ["name": "Hawks"]))
        func stage() throws -> Bool {
            try device.store.stage(
                [part], reaching: 5, more: true, lineage: "l5", dataSet: "d", owner: "test", now: 1)
        }
        #expect(try stage())
        #expect(try !stage())
        #expect(try device.rows("SELECT count(*) FROM martlet_inbox") == [[1]])
    }

    @Test("a difference made before the stream moved on is not applied")
    func overtaken() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        try device.take(.batch(2, 3, [.upsert(3, "teams", "1", #"{"name":"Newest"}"#)]))
        #expect(throws: FixtureError.self) {
            try device.apply(
                [DeviceFixture.difference(2, self.whole("teams", 1, at: 2, ["name": "Old"]))],
                reaching: 2)
        }
        #expect(try device.rows("SELECT name FROM teams WHERE id = 1") == [["Newest"]])
    }

    @Test("a row the table refuses is quarantined; the others come in, and the version moves on")
    func quarantine() throws {
        let device = try DeviceFixture.withTeams()
        var teams = whole("teams", 1, at: 8, ["name": "Hawks"])
        teams.update.append(.integer(2))
        teams.entries.append(
            RecordEntry(id: .integer(2), revision: 9, attributes: ["city": "Rome"]))
        _ = try device.gather()
        try device.apply([DeviceFixture.difference(9, teams)], reaching: 9)
        #expect(try device.store.revision == 9)
        // What the device had of it stays, with its revision, so that an edit of it is refused.
        #expect(try device.rows("SELECT name FROM teams ORDER BY id") == [["Hawks"], ["Ravens"]])
        #expect(try device.rows("SELECT revision FROM martlet_records WHERE id = 2") == [[2]])
        let kept = try #require(try device.store.quarantined().first)
        #expect(kept.type == "teams")
        #expect(kept.id == .integer(2))
        #expect(kept.revision == 9)
        #expect(kept.attributes == ["city": "Rome"])
        #expect(kept.message.contains("NOT NULL"))
    }

    @Test("a quarantined record comes out when a change makes it fit")
    func release() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        try device.apply(
            [DeviceFixture.difference(9, whole("teams", 7, at: 9, ["city": "Rome"]))], reaching: 9)
        #expect(try device.store.quarantined().count == 1)
        try device.take(.batch(9, 10, [.upsert(10, "teams", "7", #"{"city":"Pisa"}"#)]))
        #expect(try device.store.quarantined().map(\.revision) == [10])
        try device.take(.batch(10, 11, [.upsert(11, "teams", "7", #"{"name":"Owls"}"#)]))
        #expect(try device.store.quarantined().isEmpty)
        #expect(
            try device.rows("SELECT name, city FROM teams WHERE id = 7") == [["Owls", "Pisa"]])
        #expect(try device.rows("SELECT revision FROM martlet_records WHERE id = 7") == [[11]])
    }

    @Test("a quarantined record is gone when it is deleted, and tried again when asked")
    func retry() throws {
        let device = try DeviceFixture.withTeams()
        var teams = whole("teams", 7, at: 9, ["city": "Rome"])
        teams.update.append(.integer(8))
        teams.entries.append(
            RecordEntry(id: .integer(8), revision: 9, attributes: ["city": "Pisa"]))
        _ = try device.gather()
        try device.apply([DeviceFixture.difference(9, teams)], reaching: 9)
        try device.take(.batch(9, 10, [.delete(10, "teams", "8")]))
        #expect(try device.store.quarantined().map(\.id) == [.integer(7)])
        #expect(try device.store.retryQuarantined(now: 5) == 1)
        try device.shell(
            """
            UPDATE martlet_quarantine SET attributes = '{"name":"Owls"}';
            """)
        #expect(try device.store.retryQuarantined(now: 5) == 0)
        #expect(try device.rows("SELECT name FROM teams WHERE id = 7") == [["Owls"]])
    }
}
