import Martlet
import MartletModel
import MartletStore
import RandomKit
import SQLiteRecords

/// A change of the coaches' rights by the office: some coaches change to another club, and some players
/// do.
struct RightsChange {
    let roles: DemoRoles
    private var random: SplitMix64

    /// The part of the coaches, one in so many, and the number of players.
    private static let coachesInOne = 3
    private static let players = 4

    init(_ roles: DemoRoles, seed: UInt64) {
        self.roles = roles
        random = SplitMix64(seed: seed)
    }

    /// Saves each change in a set of its own, on a device of the office. One that the file's constraints
    /// refuse is left out.
    mutating func run(on device: DemoDevice) async throws {
        let people = roles.people.shuffled(using: &random)
        for coach in people.prefix(max(1, people.count / Self.coachesInOne)) {
            try await move(
                "memberships", "person = ? AND id > 0", [.text(coach)], on: device)
        }
        for _ in 0..<Self.players { try await move("players", "id > 0", [], on: device) }
    }

    /// Gives a record another club.
    private mutating func move(
        _ type: String, _ condition: String, _ arguments: [SQLValue], on device: DemoDevice
    ) async throws {
        let (draw, next) = (random.next(), random.next())
        do {
            try await device.client.write { context in
                let clubs = try context.rows("SELECT id FROM clubs WHERE id > 0 ORDER BY id")
                let records = try context.rows(
                    "SELECT id FROM \(type) WHERE \(condition) ORDER BY id", arguments)
                guard !clubs.isEmpty, !records.isEmpty else { return }
                let club = clubs[Int(next % UInt64(clubs.count))].values[0]
                let record = records[Int(draw % UInt64(records.count))].values[0]
                guard let id = RecordID(record) else { return }
                _ = try context.update(
                    type, id, RecordValues(names: ["club_id"], values: [club]))
            }
        } catch let error as StoreError where error.kind == .constraint {
            return
        }
    }
}
