import Martlet
import Testing

@testable import YouthSports

@Suite("Roster")
struct RosterCenterTests {
    @Test("a shirt is worn by one player of a team")
    func shirts() async throws {
        let device = try await TemporaryOrganisation()
        let roster = device.organisation.roster
        _ = try await device.team("Falcons", players: ["Ann"])
        await #expect(throws: OrganisationError.self) {
            try await roster.sign(
                Player(name: "Bea", birthday: "2014-01-01", shirt: 1), for: "Falcons")
        }
        try await roster.sign(
            Player(name: "Bea", birthday: "2014-01-01", shirt: 2), for: "Falcons")
        #expect(try await roster.roster(of: "Falcons").map(\.name) == ["Ann", "Bea"])
    }

    @Test("a player moves with the shirt where it is free, and without it where it is worn")
    func transfer() async throws {
        let device = try await TemporaryOrganisation()
        let roster = device.organisation.roster
        let falcons = try await device.team("Falcons", players: ["Ann", "Bea"])
        _ = try await device.team("Owls", players: ["Cia"])
        #expect(try await roster.transfer(falcons[0], to: "Owls").shirt == nil)
        #expect(try await roster.transfer(falcons[1], to: "Owls").shirt == 2)
        #expect(try await roster.roster(of: "Owls").map(\.name) == ["Ann", "Bea", "Cia"])
        #expect(try await roster.roster(of: "Falcons").isEmpty)
        await #expect(throws: OrganisationError.self) {
            try await roster.transfer(.integer(4711), to: "Owls")
        }
    }

    @Test("merging teams is one change set over two tables, or nothing")
    func merge() async throws {
        let device = try await TemporaryOrganisation()
        let roster = device.organisation.roster
        _ = try await device.team("Falcons", players: ["Ann", "Bea"])
        _ = try await device.team("Owls", players: ["Cia"])
        let before = try await device.waiting
        await #expect(throws: OrganisationError.self) {
            try await roster.merge("Falcons", into: "Falcons")
        }
        #expect(try await device.waiting == before)
        #expect(try await roster.merge("Falcons", into: "Owls") == 2)
        #expect(try await device.waiting == before + 1)
        #expect(try await roster.roster(of: "Owls").count == 3)
        await #expect(throws: OrganisationError.self) { try await roster.roster(of: "Falcons") }
    }

    @Test("a card shows two tables' data, and stores what it owns")
    func card() async throws {
        let device = try await TemporaryOrganisation()
        let players = try await device.team("Falcons", players: ["Ann"])
        let roster = device.organisation.roster
        #expect(try await roster.card(of: players[0]) == "#1 Ann (Falcons)")
        let id = players[0]
        try await device.organisation.client.write { context in
            var card = PlayerCard()
            guard try Players().fill(&card, from: id, in: context) else { return }
            card.name = "Anne"
            try Players().update(card, in: context)
        }
        let player = try await device.organisation.client.read { try Players().find(id, in: $0) }
        #expect(player?.name == "Anne")
        #expect(player?.birthday == "2014-05-31")
        #expect(try await roster.card(of: id) == "#1 Anne (Falcons)")
    }
}
