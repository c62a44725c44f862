internal import MartletStore

/// A record of a few kinds of values.
struct Score: Codable, ReadableRecord, Sendable {
    var id: String
    var team: Int
    var name: String
    var points: Double
    var shirt: Int?
    var active: Bool

    static let table = PlainTable(
        "scores", of: Score.self,
        declaration: """
            CREATE TABLE scores (
                id TEXT PRIMARY KEY, team INTEGER NOT NULL, name TEXT NOT NULL,
                points REAL NOT NULL, shirt INTEGER, active BOOLEAN NOT NULL)
            """)

    init(_ number: Int) {
        id = "score-number-\(number)"
        team = number % 10
        name = "A name of some length \(number)"
        points = Double(number) / 4
        shirt = number % 10 == 0 ? nil : number % 99
        active = number % 2 == 0
    }
}
