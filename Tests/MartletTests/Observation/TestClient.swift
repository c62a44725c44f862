import Foundation
import MartletModel
import MartletStore
import SQLiteKit
import SmallWorlds

@testable import Martlet

/// A client in a folder of its own.
final class TestClient: Sendable {
    let folder: URL
    let path: String
    let client: MartletClient
    let players = PlainTable("players", of: Player.self)
    let notes = PlainTable("notes")

    init(
        _ transport: (any Transport)?, script: String = DeviceFixture.script,
        _ change: (inout ClientOptions) -> Void = { _ in }
    ) async throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-client-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appendingPathComponent("device.sqlite").path
        var options = ClientOptions()
        change(&options)
        client = try await MartletClient.open(
            path: path, schema: script, transport: transport, options: options)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    func run(_ sql: String, _ arguments: [SQLValue] = []) async throws {
        try await client.write { context in
            _ = try context.rows(sql, arguments)
        }
    }

    @discardableResult
    func insert(_ player: Player) async throws -> Int64 {
        let players = players
        let key = try await client.write { try players.insert(player, in: $0) }
        guard case .integer(let number) = key else { throw FixtureError.leased }
        return number
    }

    /// What another process would read from the file now.
    func text(_ sql: String) -> String? {
        try? Connection(path: path, mode: .readOnly).text(sql)
    }
}

struct Player: Codable, Hashable, Sendable, ReadableRecord {
    var id: Int64?
    var team_id: Int64?
    var name: String?
    var shirt: Int?
}
