import Martlet
import MartletTesting
import Testing

@testable import YouthSports

@Suite("Sync, simulated")
struct SyncTests {
    /// Coaches who take notes about two players, so that they meet.
    private func simulation(
        _ name: String = #function, faults: FaultPlan = .poorWiFi
    ) throws -> Simulation {
        var simulation = Simulation(
            name, schema: .versions(try OrganisationSchema.versions()), devices: 4, steps: 200,
            faults: faults)
        simulation.hooks = .consent()
        simulation.prepare { device in
            try await TeamsCenter(database: device).found(
                Team(name: "Falcons", ageGroup: "U12"), coach: "Ines")
            for name in ["Ann", "Bea"] {
                try await RosterCenter(database: device).sign(
                    Player(name: name, birthday: "2014-05-31"), for: "Falcons")
            }
        }
        simulation.user("takes a note") { device, user in
            let roster = RosterCenter(database: device)
            let players = try await roster.roster(of: "Falcons")
            guard let player = players.randomElement(using: &user)?.id else { return }
            try await roster.note("\(user.mark()) has trained well", of: player)
        }
        simulation.user("notes the parents' word") { device, user in
            let roster = RosterCenter(database: device)
            let players = try await roster.roster(of: "Falcons")
            guard let player = players.randomElement(using: &user)?.id else { return }
            try await roster.setConsent(Bool.random(using: &user), of: player)
        }
        simulation.atRest("every note stands once") { devices in
            let players = try await RosterCenter(database: devices[0]).roster(of: "Falcons")
            for player in players {
                let lines = player.notes.split(separator: "\n")
                if Set(lines).count < lines.count { return "\(player.name): \(player.notes)" }
            }
            return nil
        }
        return simulation
    }

    @Test("notes of people who do not know of each other all stand in the end")
    func notes() async throws {
        var simulation = try simulation()
        simulation.resolver = { try await RefusedNotes(database: $0).converge() }
        let summary = try await simulation.run(seeds: 1...8)
        #expect(summary.report.refused > 0)
    }

    @Test("so they do where devices and disks fail at any moment")
    func crashes() async throws {
        var simulation = try simulation(faults: FaultPlan())
        // They are rare, and the worlds few and short.
        simulation.tolerated = [
            .clockJump, .streamCut, .strayBatch, .oldSnapshot, .spoiltSnapshot, .portal,
            .strangeAnswer, .mixedAnswer,
        ]
        simulation.resolver = { try await RefusedNotes(database: $0).converge() }
        try await simulation.run(seeds: 1...8)
    }

    @Test("they do on a clinic's line of 23 kbit/s, and in a hotel that wants a login")
    func networks() async throws {
        for network in [FaultPlan.clinic, .hotel] {
            var simulation = try simulation(faults: network)
            simulation.tolerated = Set(FaultKind.allCases)
            simulation.resolver = { try await RefusedNotes(database: $0).converge() }
            try await simulation.run(seeds: 1...4)
        }
    }

    @Test("what the club's own programs write with SQL goes to everybody")
    func programs() async throws {
        var simulation = try simulation()
        simulation.resolver = { try await RefusedNotes(database: $0).converge() }
        simulation.program("imports a coach", on: .server) { user in
            "INSERT INTO staff (name) VALUES ('import \(user.mark())')"
        }
        simulation.program("corrects birthdays", on: .device) { _ in
            "UPDATE players SET birthday = '2014-05-30' WHERE birthday = '2014-05-31'"
        }
        let summary = try await simulation.run(seeds: 1...4)
        #expect(summary.report.externalWrites > 0)
    }

    /// Coaches see the players of their teams, and the office sees all.
    private static let rules = """
        ALTER TABLE teams DISABLE ROW LEVEL SECURITY;
        ALTER TABLE staff DISABLE ROW LEVEL SECURITY;
        ALTER TABLE duties DISABLE ROW LEVEL SECURITY;
        CREATE POLICY coach ON players USING (team_id IN (
            SELECT duties.team_id FROM duties JOIN staff ON staff.id = duties.staff_id
            WHERE staff.name = martlet_user()));
        CREATE POLICY office ON players TO office USING (true);
        """

    @Test("a coach has the players of her teams, whoever else writes about them, and no others")
    func policies() async throws {
        var simulation = try simulation()
        simulation.rules = Self.rules
        simulation.people = [
            SimulatedPerson("Olga", roles: ["office"]), SimulatedPerson("Ines"),
            SimulatedPerson("Jo"),
        ]
        simulation.resolver = { try await RefusedNotes(database: $0).converge() }
        let summary = try await simulation.run(seeds: 1...4)
        #expect(summary.report.moves > 0)
    }

    @Test("the release that adds events comes while people of the last one found teams")
    func nextVersion() async throws {
        var simulation = Simulation(
            schema: .versions(try OrganisationSchema.versions(upTo: 2)), devices: 3, steps: 300)
        simulation.nextVersion = .versions(try OrganisationSchema.versions())
        simulation.user("founds a team") { device, user in
            try await TeamsCenter(database: device).found(
                Team(name: user.mark(), ageGroup: "U12"), coach: "Ines")
        }
        simulation.user("plans an event") { device, user in
            guard await device.isUpdated else { return }
            let center = TeamsCenter(database: device)
            let teams = try await center.overview()
            guard let team = teams.randomElement(using: &user)?.team.name else { return }
            try await center.plan(user.mark(), on: "2026-05-01", for: team)
        }
        let summary = try await simulation.run(seeds: 1...4)
        #expect(summary.report.faults[.update] == 16)
    }

    @Test("what was done out of reach arrives when the network is back")
    func outOfReach() async throws {
        let simulation = Simulation(
            schema: .versions(try OrganisationSchema.versions()), devices: 2, faults: .none)
        let world = try SimulatedWorld(simulation, seed: 1)
        try await world.begin()
        await world.disconnect(1)
        try await TeamsCenter(database: world.devices[1]).found(
            Team(name: "Owls", ageGroup: "U10"), coach: "Olga")
        try await world.pass(.seconds(30))
        let apart = try await world.text()
        await world.connect(1)
        try await world.converge()
        let difference = try await world.text().difference(from: apart)
        #expect(difference.contains("+ server    teams 1: age_group “U10”, name “Owls”"))
    }

    @Test("a resolver that drops an edit is found")
    func forgetful() async throws {
        var simulation = try simulation("forgetful()")
        simulation.resolver = { try await ForgetfulResolver(database: $0).converge() }
        let wrong = simulation
        let found = await #expect(throws: FoundFailure.self) { try await wrong.run(seeds: 1...100) }
        // The smallest world there is: two devices, and two people who do not know of each other.
        #expect(found?.plan.devices == 2)
        let report = try #require(found).description
        #expect(report.contains("an edit is lost"))
        #expect(report.contains("the resolver dropped it"))
        #expect(report.contains("drops the refused set"))
    }
}

/// A resolver with a mistake: it takes the server's notes, which are newer, to hold ours as well.
private struct ForgetfulResolver {
    let database: any SyncedDatabase

    func converge() async throws {
        for set in try await database.parked() {
            let isThere = set.changes.allSatisfy { $0.theirs?["notes"] != nil }
            if isThere { try await database.drop(set.identifier) }
        }
    }
}
