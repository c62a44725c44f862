import Foundation
import MartletStore

/// A database of teams and players on a file of its own.
final class League: Sendable {
    struct Player: Codable, Hashable, ReadableRecord, Sendable {
        var id: Int?
        var teamID: Int?
        var name: String
        var shirt: Int?
        var score = 0
        var height = 1.8
        var isCaptain = false
        var captainID: Int?
        var born: Date?
    }

    struct Team: Codable, Hashable, ReadableRecord, Sendable {
        var id: Int?
        var name: String
        var city: String?
    }

    struct Players: Table {
        typealias Element = Player
        let tableName = "players"
        let declaration: String? = """
            CREATE TABLE players(
                id INTEGER PRIMARY KEY, teamID INTEGER REFERENCES teams(id) ON DELETE CASCADE,
                name TEXT NOT NULL, shirt INTEGER, score INTEGER NOT NULL DEFAULT 0,
                height REAL NOT NULL DEFAULT 1.8, isCaptain BOOLEAN NOT NULL DEFAULT 0,
                captainID INTEGER, born TEXT,
                doubled INTEGER GENERATED ALWAYS AS (score * 2) VIRTUAL);
            CREATE INDEX players_name ON players(name);
            CREATE INDEX players_shirt ON players(shirt);
            """
        let id = Column("id", \Player.id)
        let teamID = Column("teamID", \Player.teamID)
        let name = Column("name", \Player.name)
        let shirt = Column("shirt", \Player.shirt)
        let score = Column("score", \Player.score)
        let height = Column("height", \Player.height)
        let isCaptain = Column("isCaptain", \Player.isCaptain)
        let captainID = Column("captainID", \Player.captainID)
        let born = Column("born", \Player.born)
        let doubled = Column<Int>("doubled")

        var columns: [any AnyColumn] {
            [id, teamID, name, shirt, score, height, isCaptain, captainID, born]
        }
    }

    struct Teams: Table {
        typealias Element = Team
        let tableName = "teams"
        let declaration: String? =
            "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, city TEXT);"
        let id = Column<Int>("id")
        let name = Column("name", \Team.name)
        let city = Column("city", \Team.city)
    }

    static let players = Players()
    static let teams = Teams()

    let folder: URL
    let pool: DatabasePool

    init(_ options: DatabaseOptions = DatabaseOptions()) async throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        pool = try await DatabasePool.open(
            path: folder.appendingPathComponent("league.sqlite").path, options: options)
        try await pool.write { context in
            for (name, city) in [("Larks", "Oslo"), ("Swifts", nil), ("Terns", "Bergen")] {
                try Self.teams.insert(Team(name: name, city: city), in: context)
            }
            try Self.players.insert(contentsOf: Self.roster, in: context)
        }
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    static let roster = [
        Player(teamID: 1, name: "Ada", shirt: 7, score: 10, height: 1.7, isCaptain: true),
        Player(teamID: 1, name: "Bo", shirt: nil, score: 5, height: 1.9, captainID: 1),
        Player(teamID: 2, name: "Cleo", shirt: 3, score: 0, captainID: 4),
        Player(teamID: 2, name: "dan_50%", shirt: 7, score: 20, isCaptain: true),
        Player(teamID: nil, name: "Eve*[x]", shirt: nil, score: -3),
    ]

    /// The names of the players who meet a condition, in the order of their ids.
    func names(_ condition: Condition) async throws -> [String] {
        try await pool.read { context in
            try Self.players.where(condition).ordered(by: Self.players.id.ascending)
                .select(Self.players.name).fetch(in: context)
        }
    }

    /// The refusal of what should not be done.
    func refusal<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> StoreError? {
        do {
            _ = try await pool.write(body)
            return nil
        } catch let error as StoreError {
            return error
        }
    }
}
