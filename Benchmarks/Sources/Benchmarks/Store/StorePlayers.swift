import CStore
import MartletStore

/// How the table's rows are told apart.
enum StoreKeys: String, CaseIterable {
    case texts = "text keys in no order"
    case integers = "integer keys"

    var flag: Int32 { self == .texts ? 1 : 0 }

    /// The table, as the C program makes it.
    var schema: String {
        """
        CREATE TABLE players (
            id \(self == .texts ? "TEXT" : "INTEGER") PRIMARY KEY, team INTEGER NOT NULL,
            first_name TEXT NOT NULL, last_name TEXT NOT NULL, score REAL NOT NULL,
            shirt INTEGER, active BOOLEAN NOT NULL, note TEXT NOT NULL);
        """
    }
}

/// A row with a text as its key, as an app would write it down.
struct TextPlayer: Codable, ReadableRecord, Sendable {
    var id: String
    var team: Int
    var firstName: String
    var lastName: String
    var score: Double
    var shirt: Int?
    var active: Bool
    var note: String

    enum CodingKeys: String, CodingKey {
        case id, team
        case firstName = "first_name"
        case lastName = "last_name"
        case score, shirt, active, note
    }

    init(_ row: store_player) {
        id = String(cString: row.key)
        team = Int(row.team)
        firstName = String(cString: row.first_name)
        lastName = String(cString: row.last_name)
        score = row.score
        shirt = row.shirt < 0 ? nil : Int(row.shirt)
        active = row.active != 0
        note = String(cString: row.note)
    }
}

/// The same with a number that SQLite or Martlet makes.
struct NumberPlayer: Codable, ReadableRecord, Sendable {
    var id: Int64?
    var team: Int
    var firstName: String
    var lastName: String
    var score: Double
    var shirt: Int?
    var active: Bool
    var note: String

    enum CodingKeys: String, CodingKey {
        case id, team
        case firstName = "first_name"
        case lastName = "last_name"
        case score, shirt, active, note
    }

    init(_ row: store_player) {
        id = nil
        team = Int(row.team)
        firstName = String(cString: row.first_name)
        lastName = String(cString: row.last_name)
        score = row.score
        shirt = row.shirt < 0 ? nil : Int(row.shirt)
        active = row.active != 0
        note = String(cString: row.note)
    }
}

/// The rows, in C's form and in Swift's.
final class StorePlayers: @unchecked Sendable {
    let keys: StoreKeys
    let count: Int
    /// The C program's; only read.
    let rows: UnsafeMutablePointer<store_player>
    let texts: [TextPlayer]
    /// Keys are left to SQLite, as the C program does.
    let numbers: [NumberPlayer]

    init(_ keys: StoreKeys, count: Int) throws {
        self.keys = keys
        self.count = count
        guard let rows = store_players_make(Int32(count), keys.flag) else {
            throw BenchmarkFailure("There was no memory for the rows.")
        }
        self.rows = rows
        let all = UnsafeBufferPointer(start: rows, count: count)
        texts = keys == .texts ? all.map { TextPlayer($0) } : []
        numbers = keys == .integers ? all.map { NumberPlayer($0) } : []
    }

    deinit {
        store_players_free(rows, Int32(count))
    }
}
