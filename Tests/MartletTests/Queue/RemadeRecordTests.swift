import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests records that are created again under a key or an id that was used before, with a real
/// server.
@Suite("Records made again")
struct RemadeRecordTests {
    /// Makes two devices. The first has created and deleted a note, and the second has seen that.
    private static func world(_ name: String) throws -> (SmallWorld, SmallDevice) {
        let world = try SmallWorld(name)
        let (first, second) = (try world.device(), try world.device())
        try first.write { try $0.insert("notes", ["body": "first"], id: "x") }
        try first.sync(with: world.server)
        try first.write { try $0.delete("notes", .text("x")) }
        try first.sync(with: world.server)
        try second.sync(with: world.server)
        return (world, second)
    }

    @Test("edits on top of a text key's new making are accepted, as they are with a new key")
    func textKey() throws {
        let (world, device) = try Self.world("remade-text")
        try device.write { try $0.insert("notes", ["body": "a"], id: "x") }
        try device.write { try $0.update("notes", .text("x"), ["body": "b"]) }
        try device.write { try $0.delete("notes", .text("x")) }
        try device.write { try $0.insert("notes", ["body": "c"], id: "x") }
        try device.write { try $0.update("notes", .text("x"), ["body": "d"]) }
        try device.sync(with: world.server)
        #expect(try device.store.parked().map(\.message) == [])
        #expect(try device.store.outboxCount == 0)
        #expect(try device.store.local.record("notes", .text("x"))?["body"] == "d")
    }

    @Test("they name what was seen of the key when the record was made")
    func base() throws {
        let (_, device) = try Self.world("remade-base")
        try device.write { try $0.insert("notes", ["body": "a"], id: "x") }
        try device.write { try $0.update("notes", .text("x"), ["body": "b"]) }
        #expect(
            try device.store.local.rows(
                "SELECT base_revision FROM martlet_changes ORDER BY sequence"
            ).map(\.values) == [[2], [2]])
        // The result is the same after the sets were moved.
        try device.store.inApplyingTransaction {
            var standing = try device.store.standing
            _ = try device.store.reconcile(
                [.entry(3, TypeChanges(name: "notes", delete: [.text("other")]))], from: &standing,
                on: Rebase.DataSources(), reaching: 3, now: 1)
        }
        try device.write { try $0.update("notes", .text("x"), ["body": "c"]) }
        #expect(
            try device.store.local.rows(
                "SELECT max(base_revision), min(base_revision), count(*) FROM martlet_changes"
            ).map(\.values) == [[2, 2, 3]])
    }

    @Test("an own deletion that comes in a difference makes no later edit stale")
    func ownDeletion() throws {
        let (_, device) = try Self.world("remade-difference")
        try device.write { try $0.insert("notes", ["body": "a"], id: "x") }
        try device.write { try $0.delete("notes", .text("x")) }
        let sent = try device.store.queuedIdentifiers()
        try device.write { try $0.insert("notes", ["body": "b"], id: "x") }
        try device.write { try $0.update("notes", .text("x"), ["body": "c"]) }
        let made = TypeChanges(
            name: "notes", create: [.text("x")],
            entries: [
                RecordEntry(id: .text("x"), revision: 3, attributes: ["body": "a"])
            ])
        let deleted = TypeChanges(name: "notes", delete: [.text("x")])
        let sets = [
            DeviceFixture.difference(5, deleted), ChangeSet.entry(3, own: sent[0], made),
            ChangeSet.entry(4, own: sent[1], deleted),
        ]
        try device.store.inApplyingTransaction {
            var standing = try device.store.standing
            _ = try device.store.reconcile(
                sets[...], from: &standing, on: Rebase.DataSources(), reaching: 5, now: 1)
        }
        #expect(try device.store.parked().map(\.message) == [])
        #expect(try device.store.outboxCount == 2)
        #expect(try device.store.local.record("notes", .text("x"))?["body"] == "c")
    }

    @Test("a key that someone else made again meanwhile is not taken over")
    func contested() throws {
        let (world, device) = try Self.world("remade-contested")
        let other = try world.device()
        try other.sync(with: world.server)
        try device.write { try $0.insert("notes", ["body": "a"], id: "x") }
        try device.write { try $0.update("notes", .text("x"), ["body": "b"]) }
        try other.write { try $0.insert("notes", ["body": "other"], id: "x") }
        try other.sync(with: world.server)
        try device.sync(with: world.server)
        #expect(try device.store.parkedCount == 2)
        #expect(try device.store.local.record("notes", .text("x"))?["body"] == "other")
    }

    @Test("statements in a save take ids from the view, beside records that are made for it")
    func statements() throws {
        let world = try SmallWorld("remade-statements")
        let device = try world.device()
        let insert = "INSERT INTO teams(id, name) SELECT id, ?1 FROM martlet_new_id"
        try device.write { context in
            _ = try context.rows(insert, ["a"])
            try context.insert("teams", ["name": "b"])
            _ = try context.rows(insert, ["c"])
            _ = try? context.savepoint { () throws -> Void in
                _ = try context.rows(insert, ["undone"])
                try context.insert("teams", ["name": "undone"])
                throw FixtureError.changed
            }
            try context.insert("teams", ["name": "d"])
        }
        try device.write { context in
            _ = try context.rows(insert, ["gone"])
            _ = try context.rows("DELETE FROM teams WHERE name = 'gone'")
        }
        try device.write { _ = try $0.rows(insert, ["e"]) }
        try device.sync(with: world.server)
        try device.write { _ = try $0.rows(insert, ["f"]) }
        try device.write { try $0.insert("teams", ["name": "g"]) }
        try device.sync(with: world.server)
        #expect(try device.store.parked().map(\.message) == [])
        #expect(
            try device.store.local.rows("SELECT group_concat(name, '') FROM teams ORDER BY id")
                .map(\.values) == [["abcdefg"]])
        #expect(try device.store.local.rows("SELECT min(id) > 0 FROM teams").map(\.values) == [[1]])
    }

    @Test("what was made under a temporary id that was used before can be put up again")
    func usedID() throws {
        let world = try SmallWorld("remade-used")
        let device = try world.device()
        try device.write { try $0.insert("teams", ["name": "a"]) }
        try device.sync(with: world.server)
        // A release that gave an id twice has queued this; today's trigger refuses it.
        try device.store.local.setState("nextTemporaryID", .integer(-2))
        try device.store.local.setState("lowestNotedID", .integer(0))
        try device.write { context in
            #expect(try context.insert("teams", ["name": "b"]) == .integer(-2))
            _ = try context.rows(
                "INSERT INTO players(id, team_id, name) SELECT id, -2, 'p' FROM martlet_new_id")
        }
        try device.sync(with: world.server)
        let parked = try device.store.parked()
        #expect(parked.map(\.reason) == [.invalid])
        try device.store.retry(parked.first?.identifier ?? "", now: 2_000)
        try device.sync(with: world.server)
        #expect(try device.store.parked().map(\.message) == [])
        #expect(
            try device.store.local.rows(
                "SELECT teams.name, players.name FROM teams LEFT JOIN players ON team_id = teams.id"
                    + " ORDER BY teams.id"
            ).map(\.values) == [["a", .null], ["b", "p"]])
    }
}
