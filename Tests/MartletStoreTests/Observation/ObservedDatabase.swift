import Foundation
import MartletStore
import Waiting

/// A database that tests observe, in a folder of its own.
final class ObservedDatabase: Sendable {
    static let script = [
        "CREATE TABLE players(id INTEGER PRIMARY KEY, name TEXT, team INTEGER)",
        "CREATE TABLE players_archive(id INTEGER PRIMARY KEY, name TEXT)",
        "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT)",
        "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)",
        "CREATE TABLE marks(player INTEGER, day TEXT, mark INTEGER, PRIMARY KEY (player, day))"
            + " WITHOUT ROWID",
        "CREATE VIRTUAL TABLE pages USING fts5(body)",
    ]

    let folder: URL
    let pool: DatabasePool
    let sleeps = HeldSleeps()
    let players = PlainTable("players", of: Player.self)

    init(trace: StatementTrace? = nil) async throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-observation-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var options = DatabaseOptions()
        options.isDurable = false
        options.trace = trace
        let sleeps = sleeps
        options.sleep = { try await sleeps.sleep($0) }
        pool = try await DatabasePool.open(
            path: folder.appendingPathComponent("test.sqlite").path, options: options)
        try await pool.write { context in
            for statement in Self.script { try context.rows(statement) }
        }
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    func run(_ sql: String, _ arguments: [SQLValue] = []) async throws {
        try await pool.write { context in
            _ = try context.rows(sql, arguments)
        }
    }

    /// Waits until so many observe; one that goes may have a fetch to end first.
    func untilObserved(by count: Int) async throws {
        try await waitUntil("\(count) observe") { subscribers == count }
    }

    var subscribers: Int { pool._changes.subscriberCount }
}

struct Player: Codable, Hashable, Sendable, ReadableRecord {
    var id: Int64?
    var name: String
    var team: Int64?
}

struct Broken: Error, Equatable {}
