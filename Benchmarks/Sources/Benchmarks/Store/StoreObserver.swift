import CStore
import Foundation
import MartletStore

/// From the call of a save, durable, to the observer's new value of the same record, in one process:
/// each write is paired with the value it made.
enum StoreObserver {
    private static let writes = 300

    static func run() async throws {
        for kind in StoreKind.allCases {
            let file = try StoreFile()
            defer { file.remove() }
            let database = try await kind.open(file.path, schema: StoreKeys.texts.schema)
            let samples = try await measure(database)
            await kind.close(database)
            try Measurement(
                "store/save of one row to its observer's value, \(kind.rawValue)", unit: "ms",
                samples: samples, expected: kind == .pool ? "0.4" : nil
            ).report()
        }
        try floor()
    }

    private static func measure(_ database: any DatabaseAccess) async throws -> [Double] {
        let players = try StorePlayers(.texts, count: 1)
        let player = players.texts[0]
        try await database.write { _ = try StoreWork.texts.insert(player, in: $0) }
        var values = StoreWork.texts.observe(player.id, in: database).makeAsyncIterator()
        guard try await values.next() != nil else { throw BenchmarkFailure("Nothing came.") }
        var samples: [Double] = []
        for team in 1_000..<(1_000 + writes) {
            let id = player.id
            let start = DispatchTime.now().uptimeNanoseconds
            try await database.write { context in
                try context.prepare("UPDATE players SET team = ? WHERE id = ?").run(team, id)
            }
            // Values may be taken together, never lost.
            while let value = try await values.next(), value?.team != team {}
            samples.append(Double(DispatchTime.now().uptimeNanoseconds - start) / 1e6)
        }
        return samples
    }

    /// What such a commit alone takes C.
    private static func floor() throws {
        let file = try StoreFile()
        defer { file.remove() }
        let players = try StorePlayers(.texts, count: writes)
        var nanoseconds = [UInt64](repeating: 0, count: writes)
        _ = try StoreFile.floor { result in
            let code = store_create(file.path, 1)
            return code == 0
                ? store_commit(file.path, players.rows, Int32(writes), 1, &result, &nanoseconds)
                : code
        }
        try Measurement(
            "store/save of one row, C alone", unit: "ms",
            samples: nanoseconds.map { Double($0) / 1e6 }
        ).report()
    }
}
