import Foundation
import MartletStore

/// A folder of a test's own, removed with the last reference to it.
final class StoreFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// The path of a file in it.
    func path(_ name: String = "test.sqlite") -> String {
        url.appendingPathComponent(name).path
    }

    /// Opens a database in it.
    func pool(
        _ name: String = "test.sqlite", script: String = "",
        _ change: (inout DatabaseOptions) -> Void = { _ in }
    ) async throws -> DatabasePool {
        var options = DatabaseOptions()
        change(&options)
        let pool = try await DatabasePool.open(path: path(name), options: options)
        try await pool.run(script)
        return pool
    }
}

extension DatabasePool {
    /// Runs statements parted by “;” at the end of a line.
    func run(_ script: String) async throws {
        try await write { context in
            for statement in script.components(separatedBy: ";\n")
            where !statement.allSatisfy({ $0.isWhitespace || $0 == ";" }) {
                try context.rows(statement)
            }
        }
    }

    /// The integer a query gives.
    func integer(_ sql: String, _ arguments: [SQLValue] = []) async throws -> Int {
        try await read { context in
            var found = 0
            try context.forEachRow(sql, arguments) { found = try $0.get(at: 0) }
            return found
        }
    }

    /// What SQLite's own check of the file says: “ok”.
    func integrity() async throws -> String {
        try await read { context in
            var lines: [String] = []
            try context.forEachRow("PRAGMA integrity_check") { lines.append(try $0.get(at: 0)) }
            return lines.joined(separator: "\n")
        }
    }
}

/// The refusal that `body` ends with; nil where it ends with none, or with another error.
func refusal<Result>(_ body: () async throws -> Result) async -> StoreError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? StoreError
    }
}
