import Martlet
import MartletDevice
internal import MartletModel
import MartletTesting

/// A small app: people write into a few shared notes.
enum NotesApp {
    static let schema = """
        CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL);
        """

    /// Three people who meet in two notes.
    static func simulation(
        _ name: String = #function, steps: Int = 200, faults: FaultPlan = .poorWiFi
    ) -> Simulation {
        var simulation = Simulation(
            name, schema: .sql(schema), devices: 3, steps: steps, faults: faults)
        simulation.prepare { device in
            try await device.write { context in
                for title in ["first", "second"] {
                    try context.insert("notes", ["title": .text(title), "body": ""])
                }
            }
        }
        simulation.user("writes into a note") { device, user in
            let (choice, mark) = (user.below(2), user.mark())
            try await device.write { context in
                let notes = try context.rows("SELECT id, body FROM notes ORDER BY id")
                guard notes.count > choice else { return }
                let body = try notes[choice].value("body", as: String.self)
                let id = try notes[choice].value("id", as: RecordID.self)
                try context.update("notes", id, ["body": .text(body + mark)])
            }
        }
        return simulation
    }

    /// Writes what was refused below what is there now. Where the note is not there it may be on its
    /// way, so the edit is kept.
    @Sendable static func append(_ device: SimulatedDevice) async throws {
        for set in try await device.parked() {
            let isWritten = try await device.write { context in
                try set.changes.allSatisfy { try append($0, context) }
            }
            if isWritten { try await device.drop(set.identifier) }
        }
    }

    private static func append(_ change: ParkedChange, _ context: WriteContext) throws -> Bool {
        guard case .text(let mine)? = change.mine?["body"],
            case .text(let base)? = change.base?["body"],
            case .text(let now)? = try context.record("notes", change.id)?["body"]
        else { return false }
        let added = words(mine).filter { !base.contains($0) && !now.contains($0) }
        if !added.isEmpty {
            try context.update("notes", change.id, ["body": .text(now + added.joined())])
        }
        return true
    }

    private static func words(_ body: String) -> [String] {
        body.split(separator: "‹").map { "‹\($0)" }
    }

    /// Gives up what was refused.
    @Sendable static func forget(_ device: SimulatedDevice) async throws {
        for set in try await device.parked() { try await device.drop(set.identifier) }
    }
}
