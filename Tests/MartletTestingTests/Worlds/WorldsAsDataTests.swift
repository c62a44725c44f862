import Martlet
internal import MartletModel
import Testing

@testable import MartletTesting

/// Tests networks, other programs and versions that a simulation is given as data.
@Suite("Worlds as data")
struct WorldsAsDataTests {
    private static let networks: [FaultPlan] = [.clinic, .hotel, .train]

    @Test("the app passes on each network that is at hand", arguments: 0..<3)
    func networks(index: Int) async throws {
        var simulation = NotesApp.simulation(
            "networks(index:)", steps: 600, faults: Self.networks[index])
        simulation.resolver = NotesApp.append
        simulation.tolerated = Set(FaultKind.allCases)
        let summary = try await simulation.run(seeds: 1...4)
        #expect(summary.report.accepted > 20)
    }

    @Test("rates of a line that carries little are counted, and time passes by its bytes")
    func clinic() async throws {
        var plan = FaultPlan.none
        plan.bytesPerSecond = 100
        let simulation = NotesApp.simulation(faults: plan)
        let summary = try await simulation.run(seeds: 1...2)
        #expect((summary.report.faults[.slowLine] ?? 0) > 10)
    }

    @Test("what another program writes to the server and to devices reaches everybody")
    func programs() async throws {
        var simulation = NotesApp.simulation()
        simulation.resolver = NotesApp.append
        simulation.program("imports a note", on: .server) { user in
            "INSERT INTO notes(title, body) VALUES ('import \(user.below(1_000))', '')"
        }
        simulation.program("corrects titles", on: .device) { user in
            "UPDATE notes SET title = 'title \(user.mark())' WHERE id = \(1 + user.below(2))"
        }
        simulation.atRest("something was imported") { devices in
            let rows = try await devices[0].read {
                try $0.rows("SELECT 1 FROM notes WHERE title GLOB 'import *'")
            }
            return rows.isEmpty ? "nothing" : nil
        }
        let summary = try await simulation.run(seeds: 1...4)
        #expect(summary.report.externalWrites > 4)
        #expect(summary.description.contains("somebody corrects titles"))
    }

    @Test("a script that no table fits is nobody's loss, and fails the run if it never fits")
    func wrongScript() async throws {
        var simulation = NotesApp.simulation()
        simulation.program("is mistaken", on: .server) { _ in "INSERT INTO nowhere VALUES (1)" }
        let wrong = simulation
        let found = await #expect(throws: IdleSimulation.self) {
            try await wrong.run(seeds: 1...2)
        }
        #expect(found?.description.contains("nowhere") == true)
    }

    @Test("a next version comes to the server and to the devices, under what they have yet to send")
    func versions() async throws {
        var simulation = NotesApp.simulation(steps: 400)
        simulation.nextVersion = .sql(
            """
            CREATE TABLE notes (
                id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, color TEXT);
            CREATE TABLE tags (id INTEGER PRIMARY KEY, note_id INTEGER REFERENCES notes(id), name TEXT);
            """)
        simulation.user("gives a note a colour") { device, user in
            guard await device.isUpdated else { return }
            let (choice, mark) = (1 + user.below(2), user.mark())
            try await device.write { context in
                try context.update("notes", .integer(Int64(choice)), ["color": .text(mark)])
            }
            let tag = user.mark()
            try await device.write { context in
                try context.insert("tags", ["name": .text(tag)])
            }
        }
        let summary = try await simulation.run(seeds: 1...4)
        #expect((summary.report.faults[.update] ?? 0) >= 16)
    }
}
