import CStore
import Foundation
import Martlet
import MartletStore

/// The persistence layer beside a C program on the same SQLite with the same pragmas: first on a
/// database of the app's own, then on a file that is kept in step, where capture runs.
enum StoreCases {
    static let rows = 100_000
    static let lookups = 10_000
    static let commits = 300
    static let pairs = 7

    @Sendable static func run() async throws {
        for keys in StoreKeys.allCases {
            let players = try StorePlayers(keys, count: rows)
            for kind in StoreKind.allCases {
                try await insert(players, kind)
                try await read(players, kind)
                try await commit(players, kind)
            }
        }
        try await StoreObserver.run()
        try await StoreStream.run()
    }

    private static func title(_ what: String, _ players: StorePlayers, _ kind: StoreKind)
        -> String
    {
        "\(what), \(players.keys.rawValue), \(kind.rawValue)"
    }

    /// Runs `body` on a new, empty database.
    private static func onNewFile(
        _ players: StorePlayers, _ kind: StoreKind,
        _ body: (any DatabaseAccess) async throws -> StoreTime
    ) async throws -> StoreTime {
        let file = try StoreFile()
        defer { file.remove() }
        let database = try await kind.open(file.path, schema: players.keys.schema)
        let time = try await body(database)
        await kind.close(database)
        return time
    }

    private static func onNewFloor(
        _ players: StorePlayers, _ body: (String, inout store_time) -> Int32
    ) throws -> StoreTime {
        let file = try StoreFile()
        defer { file.remove() }
        return try StoreFile.floor { result in
            let code = store_create(file.path, players.keys.flag)
            return code == 0 ? body(file.path, &result) : code
        }
    }

    private static func insert(_ players: StorePlayers, _ kind: StoreKind) async throws {
        let works: [(String, String, StoreWork)] = [
            ("insert \(rows), prepared", "1.25", .prepared),
            ("insert \(rows), records", "1.6", .records),
        ]
        for (what, expected, work) in works {
            // Where records are kept in step, a NULL key is refused: integer keys are Martlet's.
            if work == .prepared, kind == .client, players.keys == .integers { continue }
            try await StorePairs.run(
                pairs: pairs, title(what, players, kind),
                expected: kind == .pool ? expected : nil
            ) {
                try onNewFloor(players) { path, result in
                    store_insert(
                        path, players.rows, Int32(players.count), players.keys.flag, &result)
                }
            } ours: {
                try await onNewFile(players, kind) { database in
                    try await StoreTime {
                        for part in kind.parts(of: rows) {
                            try await database.write { context in
                                try work.insert(players, part, context)
                            }
                        }
                    }
                }
            }
        }
    }

    private static func read(_ players: StorePlayers, _ kind: StoreKind) async throws {
        let file = try StoreFile()
        defer { file.remove() }
        // Whatever keys it has given, the C program reads the same file.
        let database = try await kind.open(file.path, schema: players.keys.schema)
        for part in kind.parts(of: rows) {
            try await database.write { try StoreWork.records.insert(players, part, $0) }
        }
        let expects = kind == .pool
        try await StorePairs.run(
            pairs: pairs * 2, title("read \(rows) records", players, kind),
            expected: expects ? "2.5" : nil
        ) {
            try StoreFile.floor { store_read(file.path, Int32(rows), players.keys.flag, &$0) }
        } ours: {
            var count = 0
            let time = try await StoreTime {
                let kept = try await database.read { try StoreWork.readAll(players, $0) }
                count = kept.count
            }
            guard count == rows else { throw BenchmarkFailure("\(count) rows were read.") }
            return time
        }
        // Ids made by a device are negative, so the C program's numbers find nothing there.
        if expects || players.keys == .texts {
            try await StorePairs.run(
                pairs: pairs * 2, title("\(lookups) look-ups by key", players, kind),
                expected: expects ? "3" : nil
            ) {
                try StoreFile.floor {
                    store_find(
                        file.path, players.rows, Int32(rows), Int32(lookups), players.keys.flag,
                        &$0)
                }
            } ours: {
                try await StoreTime {
                    _ = try await database.read { try StoreWork.find(players, lookups, $0) }
                }
            }
        }
        await kind.close(database)
    }

    private static func commit(_ players: StorePlayers, _ kind: StoreKind) async throws {
        try await StorePairs.run(
            pairs: pairs, title("\(commits) durable commits of one row", players, kind),
            expected: kind == .pool ? "1" : nil
        ) {
            try onNewFloor(players) { path, result in
                store_commit(
                    path, players.rows, Int32(commits), players.keys.flag, &result, nil)
            }
        } ours: {
            try await onNewFile(players, kind) { database in
                try await StoreTime {
                    for number in 0..<commits {
                        try await database.write {
                            try StoreWork.records.insert(players, number..<(number + 1), $0)
                        }
                    }
                }
            }
        }
    }
}
