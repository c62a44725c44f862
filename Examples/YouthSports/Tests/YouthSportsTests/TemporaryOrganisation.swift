import Foundation
import Martlet

@testable import YouthSports

/// An organisation on a file of its own, without a server.
final class TemporaryOrganisation: Sendable {
    let organisation: Organisation
    private let folder: URL

    init() async throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("youth-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        organisation = try await Organisation.open(
            path: folder.appendingPathComponent("organisation.sqlite").path)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    var path: String { folder.appendingPathComponent("organisation.sqlite").path }

    /// A team with a coach, and as many players as there are names.
    func team(_ name: String, players: [String] = [], hasConsent: Bool = true) async throws
        -> [RecordID]
    {
        try await organisation.teams.found(Team(name: name, ageGroup: "U12"), coach: "Ines")
        var ids: [RecordID] = []
        for (index, player) in players.enumerated() {
            ids.append(
                try await organisation.roster.sign(
                    Player(
                        name: player, birthday: "2014-05-31", shirt: index + 1,
                        hasConsent: hasConsent), for: name))
        }
        return ids
    }

    /// The number of change sets waiting to be sent.
    var waiting: Int {
        get async throws { try await organisation.client.status().outbox }
    }
}
