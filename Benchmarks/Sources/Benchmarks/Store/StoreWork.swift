import MartletStore

/// What is done with the rows, as an app would do it.
enum StoreWork {
    /// The app's own SQL, prepared once.
    case prepared
    /// `Codable` records through a table.
    case records

    static let texts = PlainTable("players", of: TextPlayer.self)
    static let numbers = PlainTable("players", of: NumberPlayer.self)

    func insert(
        _ players: StorePlayers, _ part: Range<Int>, _ context: WriteContext
    ) throws {
        switch (self, players.keys) {
        case (.records, .texts):
            try Self.texts.insert(contentsOf: players.texts[part], in: context)
        case (.records, .integers):
            try Self.numbers.insert(contentsOf: players.numbers[part], in: context)
        case (.prepared, .texts):
            try insert(players.texts[part], context)
        case (.prepared, .integers):
            try insert(players.numbers[part], context)
        }
    }

    private static let insert = "INSERT INTO players VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

    private func insert(_ players: ArraySlice<TextPlayer>, _ context: WriteContext) throws {
        let insert = try context.prepare(Self.insert)
        for player in players {
            try insert.run(
                player.id, player.team, player.firstName, player.lastName, player.score,
                player.shirt, player.active, player.note)
        }
    }

    private func insert(_ players: ArraySlice<NumberPlayer>, _ context: WriteContext) throws {
        let insert = try context.prepare(Self.insert)
        for player in players {
            try insert.run(
                player.id, player.team, player.firstName, player.lastName, player.score,
                player.shirt, player.active, player.note)
        }
    }

    /// All rows; the caller lets go of them when the time is taken.
    static func readAll(_ players: StorePlayers, _ context: ReadContext) throws -> StoreKept {
        switch players.keys {
        case .texts: StoreKept(texts: try texts.all(in: context))
        case .integers: StoreKept(numbers: try numbers.all(in: context))
        }
    }

    static func find(
        _ players: StorePlayers, _ lookups: Int, _ context: ReadContext
    ) throws -> StoreKept {
        var kept = StoreKept()
        for lookup in 0..<lookups {
            let index = lookup * 7_919 % players.count
            switch players.keys {
            case .texts:
                if let found = try texts.find(players.texts[index].id, in: context) {
                    kept.texts.append(found)
                }
            case .integers:
                if let found = try numbers.find(Int64(index + 1), in: context) {
                    kept.numbers.append(found)
                }
            }
        }
        guard kept.count == lookups else {
            throw BenchmarkFailure("\(kept.count) of \(lookups) were found.")
        }
        return kept
    }
}

/// What was read.
struct StoreKept: Sendable {
    var texts: [TextPlayer] = []
    var numbers: [NumberPlayer] = []

    var count: Int { texts.count + numbers.count }
}
