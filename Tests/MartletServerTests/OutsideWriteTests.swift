import Foundation
import SQLiteKit
import Testing

@testable import MartletServer

@Suite("Other programs write to the server's file")
struct OutsideWriteTests {
    private static let bearer = "Authorization: Bearer secret"

    @Test("and devices that listen have it soon: one row, 1,000 rows")
    func listening() async throws {
        let live = try await LiveServer()
        let path = try #require(
            FileManager.default.enumerator(atPath: live.folder.path)?
                .compactMap { $0 as? String }.first { $0.hasSuffix(".sqlite") })
        let file = live.folder.path + "/" + path
        let writes = [
            "INSERT INTO teams (name) VALUES ('Ants')",
            """
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000)
            INSERT INTO players (team, name) SELECT 1, 'P' || n FROM n
            """,
            "UPDATE players SET active = 1, fee = '1.50'", "DELETE FROM players WHERE id = 7",
        ]
        var revision = 0
        for (write, count) in zip(writes, [1, 1_000, 1_000, 1]) {
            let since = revision
            async let waiting = live.request(
                "GET", "/deltas?since=\(since)&wait=30", headers: [Self.bearer])
            try await Self.run(write, file)
            let answer = try await waiting
            #expect(try answer.member("nextVersion") == revision + 1)
            #expect(((try answer.member("deltas")) as [[String: Any]]?)?.count == count)
            revision += 1
        }
        #expect(live.logLines.allSatisfy { !$0.contains("storage") })
        await live.stop()
    }

    /// As another program does it, with SQLite's own settings, on a thread of its own.
    private static func run(_ sql: String, _ path: String) async throws {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try Connection(path: path, mode: .readWrite).execute(sql)
                    })
            }
        }
    }
}
