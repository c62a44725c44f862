import Foundation
import Martlet
internal import MartletModel
import Testing
import Waiting

/// Tests a large write into a file that is synchronised meanwhile.
@Suite("Large writes of a client", .timeLimit(.minutes(5)))
struct LargeWriteTests {
    struct Team: Codable, ReadableRecord, Sendable {
        var id: RecordID?
        var name: String
        var city: String?
    }

    struct Player: Codable, ReadableRecord, Sendable {
        var id: RecordID?
        var team: RecordID
        var name: String
    }

    @Test("goes out in sets between other saves; references hold while ids are being assigned")
    func reaches() async throws {
        let server = try LiveServer()
        try await server.start()
        let writer = try await server.device("writer") { $0.pull = .live(pollingEvery: nil) }
        let other = try await server.device("other") { $0.pull = .onRequest }
        writer.start()
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-large-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let load = try await LargeWrite.open("season", in: folder, into: writer)
        let teams = PlainTable("teams", of: Team.self)
        let players = PlainTable("players", of: Player.self)
        let keys = try await load.insert((0..<30).map { Team(name: "Team \($0)") }, into: teams)
        // The players of the last teams are written in later saves, when the teams have their
        // permanent ids.
        for (number, key) in keys.enumerated() {
            let squad = (0..<20).map { Player(team: key, name: "\(number).\($0)") }
            try await load.insert(squad, into: players)
        }
        try await load.endGathering()
        let end = try await load.run(recordsPerSave: 50) { state in
            #expect(state.done <= state.total)
        }
        #expect(end.done == 630)
        try await waitUntil("all is sent") { try await writer.status().outbox == 0 }
        try await other.sync()
        for client in [writer, other] {
            let wrong = try await client.read { context in
                try context.rows(
                    """
                    SELECT 1 FROM players LEFT JOIN teams ON teams.id = team
                    WHERE players.name NOT LIKE replace(teams.name, 'Team ', '') || '.%'
                        OR teams.id IS NULL OR players.id < 0 OR teams.id < 0
                    """
                ).count
            }
            #expect(wrong == 0)
            let count = try await client.read { try $0.rows("SELECT id FROM players").count }
            #expect(count == 600)
            #expect(try await client.status().parked == 0)
        }
        // There are thirteen sets of 50 records; the last one has fewer.
        #expect(try await other.status().revision == 13)
        for client in [writer, other] { await client.close() }
        await server.stop()
    }
}
