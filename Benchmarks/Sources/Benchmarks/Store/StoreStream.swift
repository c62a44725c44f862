import CStore
import Foundation
import MartletStore

/// Reading a million rows one after the other: how much the process grows.
enum StoreStream {
    private static let rows = 1_000_000

    static func run() async throws {
        let file = try StoreFile()
        defer { file.remove() }
        try fill(file.path)
        let pool = try await DatabasePool.open(path: file.path)
        // What a first query allocates for good is not growth.
        _ = try await stream(pool, limit: 1_000)
        let before = try Machine.memory("VmRSS")
        try Machine.forgetPeak()
        let start = DispatchTime.now().uptimeNanoseconds
        let sum = try await stream(pool, limit: rows)
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        let growth = try Machine.memory("VmHWM") - before
        guard sum == rows * (rows + 1) / 2 else { throw BenchmarkFailure("Rows are missing.") }
        await pool.close()
        try Measurement(
            "store/stream \(rows) records: growth of the resident peak", unit: "KiB",
            samples: [growth], expected: "flat"
        ).report()
        try Measurement("store/stream \(rows) records", unit: "s", samples: [seconds]).report()
    }

    private static func stream(_ pool: DatabasePool, limit: Int) async throws -> Int {
        try await pool.read { context in
            var sum = 0
            let condition = Condition(sql: "id <= ?", arguments: [.integer(Int64(limit))])
            try StoreWork.numbers.forEach(where: condition, in: context) { player in
                sum += Int(player.id ?? 0)
            }
            return sum
        }
    }

    private static func fill(_ path: String) throws {
        guard let players = store_players_make(Int32(rows), 0) else {
            throw BenchmarkFailure("There was no memory for the rows.")
        }
        defer { store_players_free(players, Int32(rows)) }
        _ = try StoreFile.floor { result in
            let code = store_create(path, 0)
            return code == 0 ? store_insert(path, players, Int32(rows), 0, &result) : code
        }
    }
}
