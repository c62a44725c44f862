import Martlet
import Testing

@testable import YouthSports

@Suite("Screenings")
struct ScreeningsCenterTests {
    private let height = Measurement(kind: "height", value: 152.5, unit: "cm")
    private let weight = Measurement(kind: "weight", value: 41, unit: "kg")

    @Test("a screening is one change set over three tables")
    func record() async throws {
        let device = try await TemporaryOrganisation()
        let screenings = device.organisation.screenings
        let player = try await device.team("Falcons", players: ["Ann"])[0]
        let before = try await device.waiting
        try await screenings.record(
            Screening(player: player, heldOn: "2026-03-01", notes: "fit"), by: "Olga",
            [weight, height])
        #expect(try await device.waiting == before + 1)
        let sheet = try #require(try await screenings.sheets(of: player).first)
        #expect(sheet.examiner == "Olga")
        #expect(sheet.measurements.map(\.kind) == ["height", "weight"])
        #expect(sheet.measurements.map(\.value) == [152.5, 41])
        #expect(sheet.screening.notes == "fit")
    }

    @Test("without consent nothing of a screening stays, whoever writes it")
    func consent() async throws {
        let device = try await TemporaryOrganisation()
        let organisation = device.organisation
        let player = try await device.team("Falcons", players: ["Ann"], hasConsent: false)[0]
        let before = try await device.waiting
        let screening = Screening(player: player, heldOn: "2026-03-01")
        let error = await #expect(throws: StoreError.self) {
            try await organisation.screenings.record(screening, by: "Olga", [height])
        }
        #expect(error?.kind == .vetoed)
        let past = await #expect(throws: StoreError.self) {
            try await organisation.client.write { try Screenings().insert(screening, in: $0) }
        }
        #expect(past?.kind == .vetoed)
        #expect(try await device.waiting == before)
        // Neither is the examiner left behind, who was new.
        #expect(try await organisation.client.read { try Staff().count(in: $0) } == 1)
        try await organisation.roster.setConsent(true, of: player)
        try await organisation.screenings.record(screening, by: "Olga", [height])
        #expect(try await organisation.screenings.sheets(of: player).count == 1)
    }

    @Test("due are those with consent whose last screening is older than the day, or missing")
    func due() async throws {
        let device = try await TemporaryOrganisation()
        let organisation = device.organisation
        let players = try await device.team("Falcons", players: ["Ann", "Bea", "Cia"])
        try await organisation.roster.setConsent(false, of: players[2])
        for (player, day) in zip(players, ["2026-03-01", "2025-03-01"]) {
            try await organisation.screenings.record(
                Screening(player: player, heldOn: day), by: "Olga", [height])
        }
        try await organisation.screenings.record(
            Screening(player: players[0], heldOn: "2024-03-01"), by: "Olga", [height])
        let due = try await organisation.screenings.due(in: "Falcons", since: "2026-01-01")
        #expect(due.map(\.name) == ["Bea"])
        let all = try await organisation.screenings.due(in: "Falcons", since: "2026-04-01")
        #expect(all.map(\.name) == ["Ann", "Bea"])
    }

    @Test("a screening of nothing, and of nobody, is refused")
    func refused() async throws {
        let device = try await TemporaryOrganisation()
        let screenings = device.organisation.screenings
        await #expect(throws: OrganisationError.self) {
            try await screenings.record(
                Screening(player: .integer(1), heldOn: "2026-03-01"), by: "Olga", [])
        }
        await #expect(throws: OrganisationError.self) {
            try await screenings.record(
                Screening(player: .integer(1), heldOn: "2026-03-01"), by: "Olga", [height])
        }
    }
}
