import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing
import TextComparison

@testable import Martlet
@testable import MartletDevice

@Suite("Sets that the server refused")
struct RefusedSetTests {
    @Test("a refused set says when the server told only some of the true rows")
    func truthCut() throws {
        let device = try DeviceFixture.withTeams()
        // The file may be an earlier release's, whose table has no place for it.
        try device.shell("ALTER TABLE martlet_parked DROP COLUMN cut")
        try device.reopen()
        try device.write { try $0.update("teams", .integer(1), ["city": "Rome"]) }
        var refusal = ChangeSet.refusal(try device.gather().changeSets[0].identifier ?? "", .stale)
        refusal.isTruthCut = true
        try device.apply([refusal], reaching: 2)
        let parked = try device.text()
        expectText(
            parked,
            """
            at 2, lineage l2
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            parked 1: stale, some true rows not told
            parked 1: update teams 1 @1: city "Rome"
            parked 1: base of teams 1: name "Falcons", city "Bergen"
            parked 1: theirs of teams 1: name "Falcons", city "Bergen"
            receipt 1: refused, stale
            """)
        try device.reopen()
        expectText(try device.text(), parked)
    }

    @Test("a refused set is parked with base, mine and theirs, and the table shows the truth")
    func refusedSetIsParked() throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "Falcons", "city": "Oslo"]))],
            reaching: 1)
        try device.write { try $0.update("teams", .integer(5), ["city": "Rome"]) }
        let set = try device.gather().changeSets[0]
        try device.apply(
            [
                .entry(2, .updated("teams", 5, at: 2, ["city": "Bonn"])),
                .refusal(set.identifier ?? "", .stale),
            ], reaching: 2)
        expectText(
            try device.text(),
            """
            at 2, lineage l2
            teams 5 @2: name "Falcons", city "Bonn"
            parked 1: stale
            parked 1: update teams 5 @1: city "Rome"
            parked 1: base of teams 5: name "Falcons", city "Oslo"
            parked 1: theirs of teams 5: name "Falcons", city "Bonn"
            receipt 1: refused, stale
            """)
    }

    @Test("a set that is tried again names its record by the id it has by then")
    func triedAgainLater() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        let first = try #require(try device.gather().changeSets[0].identifier)
        try device.write { try $0.update("teams", .integer(-2), ["city": "Rome"]) }
        try device.apply([.refusal(first, .permission)], reaching: 0)
        let parked = try device.store.parked()
        expectText(
            try device.text(),
            """
            at 0, lineage l0
            parked 1: permission
            parked 1: create teams -2 @0: name "Falcons", city "Oslo"
            parked 2: dependency
            parked 2: update teams -2 @0: city "Rome"
            receipt 1: refused, permission
            receipt 2: refused, dependency
            """)
        try device.store.retry(parked[0].identifier, now: 3)
        let again = try #require(try device.gather().changeSets.first)
        #expect(again.types[0].create == [.integer(-2)])
        try device.apply(
            [
                .entry(
                    1, own: again.identifier,
                    .created("teams", 11, old: -2, at: 1, ["name": "Falcons"]))
            ], reaching: 1)
        try device.store.retry(parked[1].identifier, now: 4)
        let later = try #require(try device.gather().changeSets.first)
        #expect(later.types.map(\.update) == [[.integer(11)]])
        expectText(
            try device.text(),
            """
            at 1, lineage l1
            teams 11 @1: name "Falcons", city "Rome"
            base teams 11 @1: name "Falcons"
            queued 4 (sent) update teams 11 @1: city "Rome"
            receipt 1: retried
            receipt 2: retried
            receipt 3: accepted at 1
            teams -2 is 11
            """)
    }

    @Test("a refused set is sent again as a new one, based on what is there now")
    func retry() throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "Falcons"]))], reaching: 1)
        try device.write { try $0.update("teams", .integer(5), ["city": "Rome"]) }
        let set = try device.gather().changeSets[0]
        try device.apply(
            [
                .entry(2, .updated("teams", 5, at: 2, ["city": "Bonn"])),
                .refusal(set.identifier ?? "", .stale),
            ], reaching: 2)
        let identifier = try device.store.retry(set.identifier ?? "", now: 3_000)
        expectText(
            try device.text(),
            """
            at 2, lineage l2
            teams 5 @2: name "Falcons", city "Rome"
            base teams 5 @2: name "Falcons", city "Bonn"
            queued 2 update teams 5 @2: city "Rome"
            receipt 1: retried
            """)
        let again = try device.gather().changeSets[0]
        #expect(again.identifier == identifier)
        #expect(again.identifier != set.identifier)
        #expect(again.types[0].entries[0].revision == 2)
        // Refused once more, the truth is back.
        try device.apply([.refusal(identifier, .permission)], reaching: 2)
        expectText(
            try device.text(),
            """
            at 2, lineage l2
            teams 5 @2: name "Falcons", city "Bonn"
            parked 2: permission
            parked 2: update teams 5 @2: city "Rome"
            parked 2: base of teams 5: name "Falcons", city "Bonn"
            parked 2: theirs of teams 5: name "Falcons", city "Bonn"
            receipt 1: retried
            receipt 2: refused, permission
            """)
    }

    @Test("a dropped set is gone; one that does not exist is named")
    func drop() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        let set = try device.gather().changeSets[0]
        try device.apply([.refusal(set.identifier ?? "", .permission)], reaching: 0)
        try device.store.drop(set.identifier ?? "", now: 1)
        expectText(
            try device.text(),
            """
            at 0, lineage l0
            receipt 1: dropped
            """)
        #expect(throws: StoreError.self) { try device.store.drop("nothing", now: 1) }
    }

    @Test("a set the server could not take now stays queued")
    func busySetStaysQueued() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        let set = try device.gather().changeSets[0]
        var refusal = ChangeSet.refusal(set.identifier ?? "", .busy)
        refusal.retryAfter = 3
        let report = try device.apply([refusal], reaching: 0)
        #expect(report.retryAfter == 3)
        expectText(
            try device.text(),
            """
            at 0, lineage l0
            teams -2: name "Mine", city "Oslo"
            base teams -2 @0
            queued 1 (sent) create teams -2 @0: name "Mine", city "Oslo"
            """)
        #expect(try device.gather().changeSets == [set])
    }
}
