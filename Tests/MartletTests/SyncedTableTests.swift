import MartletModel
internal import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tables on data that is kept in step: keys, temporary ids, references.
@Suite("Tables of a device")
struct SyncedTableTests {
    struct Team: Codable, Equatable, ReadableRecord {
        var id: Int?
        var name: String
        var city: String?
    }

    private let teams = PlainTable("teams", of: Team.self)
    private let players = PlainTable("players")
    private let notes = PlainTable("notes")

    /// Inserts a team and a player through tables, and lets the server accept both.
    private func accepted() throws -> DeviceFixture {
        let device = try DeviceFixture()
        try device.write { context throws in
            let team = try teams.insert(Team(name: "Falcons", city: "Oslo"), in: context)
            #expect(team == .integer(-2))
            let player: RecordValues = ["name": "Ann", "team_id": SQLValue(team)]
            #expect(try players.insert(player, in: context) == .integer(-3))
        }
        let set = try device.gather().changeSets[0]
        #expect(set.types.map(\.create).flatMap(\.self) == [.integer(-2), .integer(-3)])
        try device.apply(
            [
                .entry(
                    1, own: set.identifier,
                    .created("teams", 11, old: -2, at: 1, ["name": "Falcons", "city": "Oslo"]),
                    .created("players", 21, old: -3, at: 1, ["name": "Ann", "team_id": 11]))
            ], reaching: 1)
        return device
    }

    @Test("a record is found, changed and deleted by its temporary id for ever")
    func temporaryIDs() throws {
        let device = try accepted()
        try device.write { context throws in
            #expect(try teams.find(-2, in: context) == Team(id: 11, name: "Falcons", city: "Oslo"))
            #expect(try teams.find(RecordID.integer(-2), in: context)?.id == 11)
            #expect(try teams.find(11, in: context)?.id == 11)
            #expect(try teams.exists(-2, in: context))
            #expect(try teams.find(keys: [-2], in: context).count == 1)
            #expect(try teams.update(Team(id: -2, name: "Owls", city: nil), in: context))
            #expect(try teams.find(-2, in: context) == Team(id: 11, name: "Owls", city: nil))
            #expect(
                try teams.upsert(Team(id: -2, name: "Kites", city: nil), in: context)
                    == .integer(11))
            #expect(try players.delete(-3, in: context))
            #expect(try players.count(in: context) == 0)
        }
        let next = try device.gather().changeSets[0]
        #expect(next.types.first { $0.name == "teams" }?.update == [.integer(11)])
        #expect(next.types.first { $0.name == "players" }?.delete == [.integer(21)])
    }

    @Test("a reference by a temporary id that became permanent is the permanent one")
    func referencesByFormerTemporaryID() throws {
        let device = try accepted()
        try device.write { context throws in
            let player = try context.insert("players", ["name": "Bea", "team_id": -2])
            #expect(try context.record("players", player)?["team_id"] == 11)
            try context.update("players", .integer(-3), ["team_id": .null])
            #expect(try context.update("players", .integer(-3), ["team_id": -2]))
            #expect(try context.record("players", .integer(21))?["team_id"] == 11)
        }
    }

    @Test("a key given for an integer key is refused; text keys may be given or are made")
    func keysGivenOrMade() throws {
        let device = try DeviceFixture()
        for key in [5, -8] {
            #expect {
                try device.write { _ = try teams.insert(Team(id: key, name: "x"), in: $0) }
            } throws: { error in
                (error as? StoreError)?.kind == .value
            }
        }
        try device.write { context throws in
            #expect(try teams.count(in: context) == 0)
            let given: RecordValues = ["id": "n1", "body": "a"]
            #expect(try notes.insert(given, in: context) == .text("n1"))
            let made = try notes.insert(["body": "b"] as RecordValues, in: context)
            guard case .text(let text) = made else {
                Issue.record("a text key is no text")
                return
            }
            #expect(text.count == 36)
            #expect(try notes.find(text, in: context)?["body"] == "b")
        }
    }

    @Test("what is not confirmed counts as newer than all others")
    func latest() throws {
        let device = try accepted()
        try device.write { context throws in
            #expect(try teams.latest(in: context)?.id == 11)
            try teams.insert(Team(name: "New"), in: context)
            try teams.insert(Team(name: "Newest"), in: context)
            #expect(try teams.latest(in: context)?.name == "Newest")
        }
    }

    @Test("a save that fails leaves nothing to send")
    func failedSave() throws {
        let device = try DeviceFixture()
        #expect {
            try device.write { context throws in
                try teams.insert(Team(name: "Falcons"), in: context)
                try players.insert(["name": "Ann", "team_id": 99] as RecordValues, in: context)
            }
        } throws: { error in
            let refusal = error as? StoreError
            return refusal?.constraint?.kind == .foreignKey
                && refusal?.constraint?.columns == ["players.team_id"]
                && refusal?.table == "players" && refusal?.key == .integer(-3)
        }
        #expect(try device.gather().changeSets.isEmpty)
        // The temporary ids were not used up.
        let key = try device.write { try teams.insert(Team(name: "Owls"), in: $0) }
        #expect(key == .integer(-2))
    }
}
