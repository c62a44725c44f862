import Martlet
import Testing

@testable import YouthSports

@Suite("Forms")
struct DraftTests {
    @Test("a form saves what was typed, on top of what others have changed meanwhile")
    func saved() async throws {
        let device = try await TemporaryOrganisation()
        let roster = device.organisation.roster
        let id = try await device.team("Falcons", players: ["Ann"])[0]
        let draft = try await roster.draft(of: id)
        draft.onChange { notice in notice.fields.map(\.name) == ["notes"] ? .keep : .take }
        draft.update { $0.name = "Anna" }
        try await roster.note("Left knee is sore.", of: id)
        #expect(draft.value.notes == "Left knee is sore.")
        #expect(draft.value.name == "Anna")
        #expect(try await draft.save() == id)
        let saved = try await roster.roster(of: "Falcons")
        #expect(saved.map(\.name) == ["Anna"])
        #expect(saved.map(\.notes) == ["Left knee is sore."])
    }

    @Test("a roster is shown again for what changes it, and for nothing else")
    func watched() async throws {
        let device = try await TemporaryOrganisation()
        let roster = device.organisation.roster
        let id = try await device.team("Falcons", players: ["Ann"])[0]
        var rosters = roster.watch(team: "Falcons").removeDuplicates().makeAsyncIterator()
        #expect(try await rosters.next()?.map(\.name) == ["Ann"])
        _ = try await device.team("Owls", players: ["Cia"])
        try await roster.transfer(id, to: "Owls")
        #expect(try await rosters.next()?.isEmpty == true)
    }

    @Test("there is no form for nobody")
    func missing() async throws {
        let device = try await TemporaryOrganisation()
        await #expect(throws: OrganisationError.self) {
            _ = try await device.organisation.roster.draft(of: .integer(4711))
        }
    }
}
