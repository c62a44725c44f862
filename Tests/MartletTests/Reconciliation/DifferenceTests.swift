import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

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
    func rowsOfDifference() throws {
        let device = try DeviceFixture.withTeams()
        var teams = whole("teams", 1, at: 8, ["name": "Hawks"])
        teams.update.append(.integer(5))
        teams.entries.append(
            RecordEntry(
                id: .integer(5), revision: 9, attributes: ["name": "Owls"]))
        teams.delete = [.integer(2), .integer(3)]
        _ = try device.gather()
        try device.apply([DeviceFixture.difference(9, teams)], reaching: 9)
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @8: name "Hawks"
            teams 5 @9: name "Owls"
            """)
    }

    @Test("rows that exchange a unique value come in")
    func swapInDifference() throws {
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
        expectText(
            try device.text(),
            """
            at 7, lineage l7
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            players 1 @6: name "A", shirt 2
            players 2 @7: name "B", shirt 1
            """)
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
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @8: name "Theirs", city "Rome"
            teams 2 @2: name "Ravens"
            receipt 1: accepted at 3
            """)
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
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @3: name "Second"
            teams 2 @8: name "Theirs"
            base teams 1 @3: name "First"
            queued 3 update teams 1 @3: name "Second"
            parked 4: stale
            parked 4: update teams 2 @4: name "Mine too"
            parked 4: base of teams 2: name "Ravens"
            parked 4: theirs of teams 2: name "Theirs"
            receipt 1: accepted at 3
            receipt 2: accepted at 4
            receipt 4: refused, stale
            """)
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
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            teams 7 @4: name "Hawks", city "Rome"
            base teams 7 @4: name "Falcons", city "Rome"
            queued 3 update teams 7 @4: name "Hawks"
            receipt 1: accepted at 3
            receipt 2: accepted at 4
            teams -2 is 7
            """)
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
        expectText(
            try device.text(),
            """
            at 4, lineage l4
            teams 1 @4: name "Hawks", city "Rome"
            teams 2 @2: name "Ravens"
            base teams 1 @4: name "Falcons", city "Rome"
            queued 1 (sent) update teams 1 @1: city "Rome"
            queued 2 update teams 1 @1: name "Hawks"
            """)
        try device.apply(
            [.entry(4, own: sent[0], .updated("teams", 1, at: 4, ["city": "Rome"]))], reaching: 4)
        expectText(
            try device.text(),
            """
            at 4, lineage l4
            teams 1 @4: name "Hawks", city "Rome"
            teams 2 @2: name "Ravens"
            base teams 1 @4: name "Falcons", city "Rome"
            queued 2 update teams 1 @1: name "Hawks"
            receipt 1: accepted at 4
            """)
    }

    @Test("parts are kept until the last comes, across a restart, and applied together")
    func partsOfDifferenceAreStaged() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        let first = DeviceFixture.difference(5, whole("teams", 1, at: 5, ["name": "Hawks"]))
        let isStaged = try device.store.stage(
            [first], reaching: 5, more: true, lineage: "l5", dataSet: "d", owner: "test", now: 1)
        #expect(isStaged)
        let staged = try device.text()
        expectText(
            staged,
            """
            at 2, lineage l2
            staged up to 5
            staged parts: 1
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            """)
        try device.reopen()
        // The stream must not slip in between.
        #expect(
            try device.take(.batch(2, 3, [.delete(3, "teams", "2")])) == "needs exchange")
        expectText(try device.text(), staged)
        let request = try device.gather()
        #expect(request.maxRevision == 5)
        #expect(request.wantsRows)
        #expect(request.lineage == "l5")
        try device.apply(
            [DeviceFixture.difference(9, whole("teams", 2, at: 9, ["name": "Owls"]))],
            reaching: 9)
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @5: name "Hawks"
            teams 2 @9: name "Owls"
            """)
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
        expectText(
            try device.text(),
            """
            at 3, lineage l3
            teams 1 @3: name "Hawks"
            players 1 @3: name "New"
            parked 1: stale
            parked 1: update teams 1 @1: city "Rome"
            parked 1: base of teams 1: name "Falcons", city "Bergen"
            parked 1: theirs of teams 1: name "Hawks"
            parked 2: stale
            parked 2: update teams 2 @2: city "Bonn"
            parked 2: base of teams 2: name "Ravens"
            receipt 1: refused, stale
            receipt 2: refused, stale
            """)
        #expect(report.changedTypes == ["teams", "players"])
        #expect(report.removed == ["teams": [.integer(2)]])
    }

    @Test("an answer to another request than the last is not taken for the next part")
    func doubled() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        let part = DeviceFixture.difference(5, whole("teams", 1, at: 5, ["name": "Hawks"]))
        func stage() throws -> Bool {
            try device.store.stage(
                [part], reaching: 5, more: true, lineage: "l5", dataSet: "d", owner: "test", now: 1)
        }
        #expect(try stage())
        let once = try device.text()
        expectText(
            once,
            """
            at 2, lineage l2
            staged up to 5
            staged parts: 1
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            """)
        #expect(try !stage())
        expectText(try device.text(), once)
    }

    @Test("a difference made before the stream moved on is not applied")
    func overtaken() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        try device.take(.batch(2, 3, [.upsert(3, "teams", "1", #"{"name":"Newest"}"#)]))
        let newest = try device.text()
        expectText(
            newest,
            """
            at 3, lineage l3
            teams 1 @3: name "Newest", city "Bergen"
            teams 2 @2: name "Ravens"
            """)
        #expect(throws: FixtureError.self) {
            try device.apply(
                [DeviceFixture.difference(2, self.whole("teams", 1, at: 2, ["name": "Old"]))],
                reaching: 2)
        }
        expectText(try device.text(), newest)
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
        // What the device had of it stays, with its revision, so that an edit of it is refused.
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @8: name "Hawks"
            teams 2 @2: name "Ravens"
            quarantine teams 2 @9: city "Rome"
            """)
        let kept = try #require(try device.store.quarantined().first)
        #expect(kept.message.contains("NOT NULL"))
    }

    @Test("a quarantined record comes out when a change makes it fit")
    func release() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        try device.apply(
            [DeviceFixture.difference(9, whole("teams", 7, at: 9, ["city": "Rome"]))], reaching: 9)
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            quarantine teams 7 @9: city "Rome"
            """)
        try device.take(.batch(9, 10, [.upsert(10, "teams", "7", #"{"city":"Pisa"}"#)]))
        expectText(
            try device.text(),
            """
            at 10, lineage l10
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            quarantine teams 7 @10: city "Pisa"
            """)
        try device.take(.batch(10, 11, [.upsert(11, "teams", "7", #"{"name":"Owls"}"#)]))
        expectText(
            try device.text(),
            """
            at 11, lineage l11
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            teams 7 @11: name "Owls", city "Pisa"
            """)
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
        expectText(
            try device.text(),
            """
            at 10, lineage l10
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            quarantine teams 7 @9: city "Rome"
            """)
        #expect(try device.store.retryQuarantined(now: 5) == 1)
        try device.shell(
            """
            UPDATE martlet_quarantine SET attributes = '{"name":"Owls"}';
            """)
        #expect(try device.store.retryQuarantined(now: 5) == 0)
        expectText(
            try device.text(),
            """
            at 10, lineage l10
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            teams 7 @9: name "Owls"
            """)
    }
}
