import Martlet
import Testing

@testable import YouthSports

@Suite("Teams")
struct TeamsCenterTests {
    @Test("a team is founded with its coach in one save, and names are not taken twice")
    func found() async throws {
        let device = try await TemporaryOrganisation()
        let teams = device.organisation.teams
        try await teams.found(Team(name: "Falcons", ageGroup: "U12"), coach: "Ines")
        #expect(try await device.waiting == 1)
        let error = await #expect(throws: OrganisationError.self) {
            try await teams.found(Team(name: "Falcons", ageGroup: "U10"), coach: "Olga")
        }
        #expect(error?.description.contains("Falcons") == true)
        let overview = try await teams.overview()
        #expect(overview.map(\.team.ageGroup) == ["U12"])
        #expect(overview.map(\.staff) == [["Ines (coach)"]])
        #expect(try await device.waiting == 1)
    }

    @Test("one person has several duties, and the same duty once")
    func duties() async throws {
        let device = try await TemporaryOrganisation()
        let teams = device.organisation.teams
        _ = try await device.team("Falcons")
        for kind in [Duty.Kind.physio, .physio, .coach] {
            try await teams.assign("Ines", to: "Falcons", as: kind)
        }
        #expect(try await teams.overview().first?.staff == ["Ines (coach)", "Ines (physio)"])
        #expect(
            try await device.organisation.client.read { try Staff().count(in: $0) } == 1)
        await #expect(throws: OrganisationError.self) {
            try await teams.assign("Ines", to: "Owls", as: .coach)
        }
    }

    @Test("an event asks for all players in one save, and who was there is noted as a whole")
    func attendance() async throws {
        let device = try await TemporaryOrganisation()
        let teams = device.organisation.teams
        let players = try await device.team("Falcons", players: ["Ann", "Bea", "Cia"])
        let before = try await device.waiting
        let event = try await teams.plan("Final", on: "2026-05-01", for: "Falcons")
        #expect(try await device.waiting == before + 1)
        try await teams.note(present: [players[0], players[2]], at: event)
        #expect(try await teams.events(of: "Falcons").map(\.present) == [2])
        // One who was not asked for: nothing of it stays.
        await #expect(throws: OrganisationError.self) {
            try await teams.note(present: [players[1], .integer(4711)], at: event)
        }
        let noted = try await teams.events(of: "Falcons")
        #expect(noted.map(\.present) == [2])
        #expect(noted.map(\.asked) == [3])
    }
}
