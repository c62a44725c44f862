import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

@testable import Martlet
@testable import MartletDevice

@Suite("Answers that leave things out, or name what the device does not have")
struct LooseAnswerTests {
    private func row(_ id: Int64, _ attributes: Attributes) -> RecordEntry {
        RecordEntry(id: .integer(id), attributes: attributes)
    }

    private func rows(_ type: String, _ entries: RecordEntry...) -> TypeChanges {
        TypeChanges(name: type, update: entries.map(\.id), entries: entries)
    }

    @Test("an accepted set without a revision is applied to nothing", arguments: [false, true])
    func withoutRevision(isPart: Bool) throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["city": "Rome"]) }
        _ = try device.gather()
        var set = DeviceFixture.difference(5, rows("teams", row(1, ["name": "Hawks"])))
        set.revision = nil
        set.isDifference = isPart
        var sets = [set]
        if isPart {
            sets.append(DeviceFixture.difference(9, rows("teams", row(2, ["name": "Owls"]))))
        }
        let before = try device.text()
        let error = #expect(throws: StoreError.self) { try device.apply(sets, reaching: 9) }
        #expect(error?.kind == .inconsistent)
        #expect(error?.message.contains("without its revision") == true)
        expectText(try device.text(), before)
    }

    @Test("a record without a revision has its set's")
    func recordRevisions() throws {
        let device = try DeviceFixture.withTeams()
        try device.apply([.entry(3, rows("teams", row(1, ["name": "Hawks"])))], reaching: 3)
        expectText(
            try device.text(),
            """
            at 3, lineage l3
            teams 1 @3: name "Hawks", city "Bergen"
            teams 2 @2: name "Ravens"
            """)
        _ = try device.gather()
        try device.apply(
            [DeviceFixture.difference(4, rows("teams", row(2, ["name": "Owls"])))], reaching: 4)
        expectText(
            try device.text(),
            """
            at 4, lineage l4
            teams 1 @3: name "Hawks", city "Bergen"
            teams 2 @4: name "Owls"
            """)
        // In parts.
        _ = try device.gather()
        try device.apply(
            [
                DeviceFixture.difference(5, rows("teams", row(1, ["name": "Kites"]))),
                DeviceFixture.difference(6, rows("teams", row(2, ["name": "Rooks"]))),
            ], reaching: 6)
        expectText(
            try device.text(),
            """
            at 6, lineage l6
            teams 1 @5: name "Kites"
            teams 2 @6: name "Rooks"
            """)
    }

    @Test("so has one whose row has to be taken out first")
    func swappedRevisions() throws {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(1, .created("players", 1, at: 1, ["name": "A", "shirt": 1])),
                .entry(2, .created("players", 2, at: 2, ["name": "B", "shirt": 2])),
            ], reaching: 2)
        _ = try device.gather()
        try device.apply(
            [
                DeviceFixture.difference(
                    7,
                    rows(
                        "players", row(1, ["name": "A", "shirt": 2]),
                        row(2, ["name": "B", "shirt": 1])))
            ], reaching: 7)
        expectText(
            try device.text(),
            """
            at 7, lineage l7
            players 1 @7: name "A", shirt 2
            players 2 @7: name "B", shirt 1
            """)
    }

    @Test("parts with records of an unknown type leave each aside in its newest form")
    func unknownInParts() throws {
        let device = try DeviceFixture.withTeams()
        try device.apply(
            [.entry(3, .created("trophies", 5, at: 3, ["motto": "Up"]))], reaching: 3)
        _ = try device.gather()
        try device.apply(
            [
                DeviceFixture.difference(
                    5, rows("trophies", row(4, ["year": 1999]), row(5, ["year": 2000]))),
                DeviceFixture.difference(9, rows("trophies", row(4, ["year": 2001]))),
            ], reaching: 9)
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            aside trophies 4 @9: year 2001
            aside trophies 5 @5: year 2000
            """)
    }

    @Test("of parts, a row the table refuses is quarantined, and the others come in")
    func refusedInParts() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        try device.apply(
            [
                DeviceFixture.difference(5, rows("teams", row(7, ["city": "Rome"]))),
                DeviceFixture.difference(9, rows("teams", row(2, ["name": "Owls"]))),
            ], reaching: 9)
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @9: name "Owls"
            quarantine teams 7 @5: city "Rome"
            """)
    }

    @Test("a quarantined record that is being edited here waits for the edit's fate")
    func quarantineUnderEdit() throws {
        let device = try DeviceFixture.withTeams()
        _ = try device.gather()
        try device.apply(
            [DeviceFixture.difference(9, rows("teams", row(2, ["city": "Rome"])))], reaching: 9)
        try device.write { try $0.update("teams", .integer(2), ["name": "Mine"]) }
        try device.shell("UPDATE martlet_quarantine SET attributes = '{\"name\":\"Owls\"}'")
        #expect(try device.store.retryQuarantined(now: 5) == 1)
        expectText(
            try device.text(),
            """
            at 9, lineage l9
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Mine"
            base teams 2 @2: name "Ravens"
            queued 1 update teams 2 @2: name "Mine"
            quarantine teams 2 @9: name "Owls"
            """)
    }

    @Test("a record of a type that this file has never had moves no edit, and is kept")
    func unknownType() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        try device.apply(
            [.entry(3, .created("trophies", 1, at: 3, ["year": 1999]))], reaching: 3)
        expectText(
            try device.text(),
            """
            at 3, lineage l3
            teams 1 @1: name "Mine", city "Bergen"
            teams 2 @2: name "Ravens"
            base teams 1 @1: name "Falcons", city "Bergen"
            queued 1 update teams 1 @1: name "Mine"
            aside trophies 1 @3: year 1999
            """)
        // An own set that made the server delete such a record is settled all the same.
        let own = try #require(try device.gather().changeSets[0].identifier)
        try device.apply(
            [
                .entry(
                    4, own: own, .updated("teams", 1, at: 4, ["name": "Mine"]),
                    TypeChanges(name: "trophies", delete: [.integer(1)]))
            ], reaching: 4)
        expectText(
            try device.text(),
            """
            at 4, lineage l4
            teams 1 @4: name "Mine", city "Bergen"
            teams 2 @2: name "Ravens"
            receipt 1: accepted at 4
            """)
    }

    @Test("a refusal without a reason and a sentence is kept with words of the device's own")
    func bareRefusal() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        var refusal = ChangeSet()
        refusal.identifier = try device.gather().changeSets[0].identifier
        refusal.conflict = true
        try device.apply([refusal], reaching: 2)
        expectText(
            try device.text(),
            """
            at 2, lineage l2
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            parked 1: invalid
            parked 1: update teams 1 @1: name "Mine"
            parked 1: base of teams 1: name "Falcons", city "Bergen"
            parked 1: theirs of teams 1: name "Falcons", city "Bergen"
            receipt 1: refused, invalid
            """)
        #expect(
            try device.store.parked().map(\.message)
                == ["The server refused the change without a sentence."])
    }
}
