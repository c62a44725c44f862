import MartletModel
internal import MartletProtocol
import MartletStore
import SmallWorlds
import Synchronization
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Queries on a device")
struct DeviceQueryTests {
    private struct Player: Codable, ReadableRecord {
        var id: Int?
        var team_id: Int?
        var name: String?
    }

    private struct Players: Table {
        typealias Element = Player
        let tableName = "players"
        let id = Column("id", \Player.id)
        let team = Column("team_id", \Player.team_id)
        let name = Column("name", \Player.name)
    }

    private struct Teams: Table {
        let tableName = "teams"
        let id = Column<Int>("id")
        let name = Column<String>("name")
    }

    private let players = Players()
    private let teams = Teams()

    /// A device whose team -2 and player -3 have become 50 and 70.
    private func confirmed() throws -> DeviceFixture {
        let device = try DeviceFixture()
        try device.write { (context) throws in
            let team = try teams.insert(
                RecordValues(names: ["name"], values: ["Larks"]), in: context)
            #expect(team == .integer(-2))
            try players.insert(Player(team_id: -2, name: "Ada"), in: context)
        }
        let set = try #require(device.gather().changeSets.first)
        try device.apply(
            [
                .entry(
                    5, own: set.identifier,
                    .created("teams", 50, old: -2, at: 5, ["name": "Larks"]),
                    .created(
                        "players", 70, old: -3, at: 5, ["name": "Ada", "team_id": .integer(50)]))
            ], reaching: 5)
        return device
    }

    @Test("temporary ids in conditions on keys and references find the record for ever")
    func resolves() throws {
        let device = try confirmed()
        let long = (0..<20).map { Optional(-2 - $0) }
        try device.write { (context) throws in
            #expect(try players.count(where: players.id == -3, in: context) == 1)
            #expect(try players.count(where: players.id != -3, in: context) == 0)
            #expect(try players.count(where: players.team == -2, in: context) == 1)
            #expect(try players.count(where: players.team.in([-2]), in: context) == 1)
            #expect(try players.count(where: players.team.in(long), in: context) == 1)
            let inner = Condition.exists(
                teams.where(teams.named().id == players.named().team && teams.named().id == -2))
            #expect(try players.count(where: inner, in: context) == 1)
            let joined = players.named("p").query()
                .join(teams.named("t"), on: players.named("p").team == teams.named("t").id)
                .filter(teams.named("t").id == -2)
            #expect(try joined.fetch(in: context).map(\.name) == ["Ada"])
            // A negative number that is nobody's id stays what it is.
            #expect(try players.count(where: players.id == -10, in: context) == 0)
        }
    }

    @Test("writes by condition become one change set, with permanent ids")
    func writes() throws {
        let device = try confirmed()
        let other = try device.write { (context) throws in
            try players.insert(Player(name: "Bo"), in: context)
        }
        try device.write { (context) throws in
            #expect(
                try players.update(
                    where: players.id == 70 || players.name == "Bo", set: players.team.set(-2),
                    players.name.set("C"), in: context) == 2)
        }
        #expect(
            try device.rows("SELECT id, team_id, name FROM players ORDER BY id") == [
                [SQLValue(other), 50, "C"], [70, 50, "C"],
            ])
        try device.write { (context) throws in
            #expect(try players.delete(where: players.id == -3, in: context) == 1)
        }
        let sets = try device.gather().changeSets
        #expect(sets.last?.types.first?.delete == [.integer(70)])
    }

    @Test("a record in memory may still point at a temporary id when it is written")
    func referencesByTemporaryID() throws {
        let device = try confirmed()
        try device.write { (context) throws in
            try players.insert(Player(team_id: -2, name: "Bo"), in: context)
            #expect(try players.update(Player(id: -3, team_id: -2, name: "Ada"), in: context))
        }
        #expect(try device.rows("SELECT DISTINCT team_id FROM players") == [[50]])
    }
}
