import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Rebase")
struct RebaseTests {
    @Test("an accepted create gets its permanent id, and so does what refers to it")
    func assigned() throws {
        let device = try DeviceFixture()
        try device.write { context in
            let team = try context.insert("teams", ["name": "Falcons"])
            try context.insert("players", ["name": "Ann", "team_id": team.sqlValue])
        }
        let set = try device.gather().changeSets[0]
        // Made while the exchange is under way.
        try device.write { context in
            try context.insert("players", ["name": "Bea", "team_id": -2])
            try context.update("teams", .integer(-2), ["city": "Rome"])
        }
        let report = try device.apply(
            [
                .entry(
                    1, own: set.identifier,
                    .created("teams", 11, old: -2, at: 1, ["name": "Falcons", "city": "Oslo"]),
                    .created("players", 21, old: -3, at: 1, ["name": "Ann", "team_id": 11]))
            ], reaching: 1)
        #expect(report.assignedIDs == 2)
        #expect(report.receipts.map(\.outcome) == [.accepted])
        #expect(
            try device.rows("SELECT id, name, city FROM teams") == [[11, "Falcons", "Rome"]])
        #expect(
            try device.rows("SELECT id, name, team_id FROM players ORDER BY id")
                == [[-4, "Bea", 11], [21, "Ann", 11]])
        let next = try device.gather().changeSets[0]
        #expect(next.types.map(\.name).sorted() == ["players", "teams"])
        let teams = next.types.first { $0.name == "teams" }
        #expect(teams?.update == [.integer(11)])
        #expect(teams?.entries[0].revision == 1)
        let players = next.types.first { $0.name == "players" }
        #expect(players?.entries[0].attributes["team_id"] == 11)
        #expect(try device.store.local.record("teams", .integer(-2))?["city"] == "Rome")
    }

    @Test("a frozen set is sent byte for byte again, whatever is written meanwhile")
    func frozen() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        let outbox = Outbox(store: device.store.applying)
        _ = try device.gather()
        let first = try outbox.freeze(byteLimit: 1 << 20)
        try device.write { try $0.update("teams", .integer(-2), ["name": "Hawks"]) }
        let second = try outbox.freeze(byteLimit: 1 << 20)
        #expect(second.count == 2)
        #expect(second[0] == first[0])
    }

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
        #expect(try device.store.parked().map(\.isTruthCut) == [true])
        try device.reopen()
        #expect(try device.store.parked().map(\.isTruthCut) == [true])
    }

    @Test("a refused set is parked with base, mine and theirs, and the table shows the truth")
    func refused() throws {
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
        #expect(try device.rows("SELECT city FROM teams") == [["Bonn"]])
        let parked = try device.store.parked()
        #expect(parked.count == 1)
        #expect(parked[0].reason == .stale)
        #expect(!parked[0].isTruthCut)
        #expect(parked[0].changes[0].base?["city"] == "Oslo")
        #expect(parked[0].changes[0].mine == ["city": "Rome"])
        #expect(parked[0].changes[0].theirs?["city"] == "Bonn")
        #expect(try device.store.outboxCount == 0)
        #expect(try device.rows("SELECT count(*) FROM martlet_base") == [[0]])
    }

    @Test(
        "an unsent edit that became stale is parked at once, and what depends on it; the rest stays"
    )
    func stale() throws {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(
                    1, .created("teams", 5, at: 1, ["name": "Falcons"]),
                    .created("players", 6, at: 1, ["name": "Ann"]))
            ], reaching: 1)
        try device.write { context in
            try context.update("teams", .integer(5), ["city": "Rome"])
            try context.insert("teams", ["name": "New"])
        }
        try device.write { try $0.insert("players", ["name": "Bea", "team_id": -2]) }
        try device.write { try $0.update("players", .integer(6), ["name": "Anna"]) }
        try device.apply([.entry(2, .updated("teams", 5, at: 2, ["city": "Bonn"]))], reaching: 2)
        #expect(try device.store.parked().map(\.reason) == [.stale, .dependency])
        #expect(
            try device.rows("SELECT id, name, city FROM teams") == [[5, "Falcons", "Bonn"]])
        #expect(try device.rows("SELECT id, name FROM players") == [[6, "Anna"]])
        #expect(try device.gather().changeSets.count == 1)
    }

    @Test("what is made on a set that was sent waits for its verdict, and then stands")
    func undecided() throws {
        let device = try DeviceFixture()
        try device.write { context in
            try context.insert("teams", ["name": "Falcons"])
            try context.insert("players", ["name": "Ann", "shirt": 10])
        }
        let sent = try device.gather().changeSets[0]
        try device.write { try $0.update("players", .integer(-3), ["name": "Anna"]) }
        try device.write { try $0.insert("players", ["name": "Cleo", "team_id": -2]) }
        // Somebody else's player has the shirt for a while; the answer does not reach the verdict.
        try device.apply(
            [.entry(1, .created("players", 9, at: 1, ["name": "Bea", "shirt": 10]))], reaching: 1)
        #expect(try device.store.parked().map(\.identifier) == [])
        #expect(try device.rows("SELECT name FROM players") == [["Bea"]])
        #expect(try device.store.outboxCount == 3)
        try device.apply(
            [
                .entry(2, .updated("players", 9, at: 2, ["shirt": 11])),
                .entry(
                    3, own: sent.identifier,
                    .created("teams", 5, old: -2, at: 3, ["name": "Falcons"]),
                    .created("players", 10, old: -3, at: 3, ["name": "Ann", "shirt": 10])),
            ], reaching: 3)
        #expect(
            try device.rows("SELECT name, team_id FROM players ORDER BY name")
                == [["Anna", .null], ["Bea", .null], ["Cleo", 5]])
        #expect(try device.store.parkedCount == 0)
    }

    @Test("what is made on a set that was sent is parked when that is refused")
    func undecidedRefused() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("players", ["name": "Ann", "shirt": 10]) }
        let sent = try device.gather().changeSets[0]
        try device.write { try $0.update("players", .integer(-2), ["name": "Anna"]) }
        try device.apply(
            [.entry(1, .created("players", 9, at: 1, ["name": "Bea", "shirt": 10]))], reaching: 1)
        try device.apply([.refusal(sent.identifier ?? "", .constraint)], reaching: 1)
        #expect(try device.store.parked().map(\.reason) == [.constraint, .dependency])
        #expect(try device.store.outboxCount == 0)
    }

    @Test("what shares a record with an edit that moves moves with it")
    func shared() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        let set = try device.gather().changeSets[0]
        let player = try device.write {
            try $0.insert("players", ["name": "Ann", "team_id": -2])
        }
        // Names the player alone, not the team whose id changes.
        try device.write { try $0.update("players", player, ["name": "Bea"]) }
        try device.apply(
            [
                .entry(
                    1, own: set.identifier,
                    .created("teams", 11, old: -2, at: 1, ["name": "Falcons"]))
            ], reaching: 1)
        #expect(try device.rows("SELECT name, team_id FROM players") == [["Bea", 11]])
        #expect(try device.store.outboxCount == 2)
    }

    @Test("a set that is tried again names its record by the id it has by then")
    func triedAgainLater() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        let first = try #require(try device.gather().changeSets[0].identifier)
        try device.write { try $0.update("teams", .integer(-2), ["city": "Rome"]) }
        try device.apply([.refusal(first, .permission)], reaching: 0)
        let parked = try device.store.parked()
        #expect(parked.map(\.reason) == [.permission, .dependency])
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
        #expect(try device.rows("SELECT id, city FROM teams") == [[11, "Rome"]])
    }

    @Test("others' changes that touch nothing of mine leave my waiting edits in place")
    func untouched() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        try device.apply([.entry(1, .created("teams", 9, at: 1, ["name": "Theirs"]))], reaching: 1)
        #expect(try device.rows("SELECT id FROM teams ORDER BY id") == [[-2], [9]])
        #expect(try device.store.outboxCount == 1)
        #expect(try device.rows("SELECT count(*) FROM martlet_base") == [[1]])
    }

    @Test("a unique value someone else took first parks my set whole")
    func unique() throws {
        let device = try DeviceFixture()
        try device.write { context in
            try context.insert("players", ["name": "Mine", "shirt": 10])
            try context.insert("teams", ["name": "With it"])
        }
        try device.apply(
            [.entry(1, .created("players", 9, at: 1, ["name": "Theirs", "shirt": 10]))],
            reaching: 1)
        #expect(try device.rows("SELECT id, shirt FROM players") == [[9, 10]])
        #expect(try device.rows("SELECT count(*) FROM teams") == [[0]])
        #expect(try device.store.parked().map(\.reason) == [.constraint])
    }

    @Test("two rows that exchanged a unique value on the server do so here")
    func swap() throws {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(
                    1, .created("players", 1, at: 1, ["name": "A", "shirt": 1]),
                    .created("players", 2, at: 1, ["name": "B", "shirt": 2]))
            ], reaching: 1)
        try device.write { try $0.update("players", .integer(1), ["name": "AA"]) }
        var changes = TypeChanges.updated("players", 2, at: 2, ["shirt": 1])
        changes.update.append(.integer(1))
        changes.entries.append(
            RecordEntry(id: .integer(1), revision: 2, attributes: ["shirt": 2]))
        try device.apply([.entry(2, changes)], reaching: 2)
        #expect(
            try device.rows("SELECT id, name, shirt FROM players ORDER BY id")
                == [[1, "A", 2], [2, "B", 1]])
        #expect(try device.store.parkedCount == 1)
    }

    @Test("deleting a record that someone tied another to is parked")
    func unseenChild() throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "Falcons"]))], reaching: 1)
        try device.write { try $0.delete("teams", .integer(5)) }
        try device.apply(
            [.entry(2, .created("players", 9, at: 2, ["name": "Ann", "team_id": 5]))], reaching: 2)
        #expect(try device.store.parked().map(\.reason) == [.stale])
        #expect(try device.rows("SELECT id FROM teams") == [[5]])
    }

    @Test("a record someone else deleted takes my edit of it out, and parks it")
    func deleted() throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "Falcons"]))], reaching: 1)
        try device.write { try $0.insert("players", ["name": "Ann", "team_id": 5]) }
        try device.apply(
            [.entry(2, TypeChanges(name: "teams", delete: [.integer(5)]))], reaching: 2)
        #expect(try device.rows("SELECT count(*) FROM players") == [[0]])
        #expect(try device.store.parked().map(\.reason) == [.dependency])
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
        #expect(try device.rows("SELECT city FROM teams") == [["Rome"]])
        let again = try device.gather().changeSets[0]
        #expect(again.identifier == identifier)
        #expect(again.identifier != set.identifier)
        #expect(again.types[0].entries[0].revision == 2)
        #expect(try device.store.parkedCount == 0)
        // Refused once more, the truth is back.
        try device.apply([.refusal(identifier, .permission)], reaching: 2)
        #expect(try device.rows("SELECT city FROM teams") == [["Bonn"]])
    }

    @Test("a dropped set is gone; one that does not exist is named")
    func drop() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        let set = try device.gather().changeSets[0]
        try device.apply([.refusal(set.identifier ?? "", .permission)], reaching: 0)
        try device.store.drop(set.identifier ?? "", now: 1)
        #expect(try device.store.parkedCount == 0)
        #expect(try device.store.receipts(limit: 9).map(\.outcome) == [.dropped])
        #expect(throws: StoreError.self) { try device.store.drop("nothing", now: 1) }
    }

    @Test("a set the server could not take now stays queued")
    func busy() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        let set = try device.gather().changeSets[0]
        var refusal = ChangeSet.refusal(set.identifier ?? "", .busy)
        refusal.retryAfter = 3
        let report = try device.apply([refusal], reaching: 0)
        #expect(report.retryAfter == 3)
        #expect(try device.store.outboxCount == 1)
        #expect(try device.store.parkedCount == 0)
        #expect(try device.gather().changeSets.count == 1)
    }

    @Test("what this version of the app does not know is kept aside")
    func aside() throws {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(
                    1, .created("halls", 3, at: 1, ["label": "North"]),
                    .created("teams", 5, at: 1, ["name": "Falcons", "motto": "Fly"]))
            ], reaching: 1)
        try device.apply([.entry(2, .updated("halls", 3, at: 2, ["size": 7]))], reaching: 2)
        let aside = try device.rows("SELECT type, attributes FROM martlet_aside ORDER BY type")
        #expect(aside.count == 2)
        #expect(try device.store.revision == 2)
        #expect(try device.rows("SELECT name FROM teams") == [["Falcons"]])
    }

    @Test("an answer that does not fit changes nothing")
    func inconsistent() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        #expect(throws: StoreError.self) {
            try device.apply(
                [
                    .entry(1, .created("teams", 5, at: 1, ["name": "Falcons"])),
                    .entry(2, .updated("teams", 77, at: 2, ["name": "Nobody"])),
                ], reaching: 2)
        }
        #expect(try device.store.revision == 0)
        #expect(try device.rows("SELECT id FROM teams") == [[-2]])
        #expect(try device.store.outboxCount == 1)
        #expect(try device.rows("SELECT capture FROM martlet_control") == [[1]])
    }
}
