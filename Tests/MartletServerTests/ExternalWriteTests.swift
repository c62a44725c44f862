import Foundation
import MartletModel
import MartletProtocol
import SQLiteKit
import Testing

@testable import MartletServer

@Suite("Other programs write to the server's file")
struct ExternalWriteTests {
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

    @Test("while they go on, answers in rows and snapshots refer to nothing that is not there")
    func meanwhile() async throws {
        let live = try await LiveServer { $0.snapshotEvery = 20 }
        _ = try await live.sync(ServerTests.create)
        let file = live.folder.path + "/league.sqlite"
        var newest: Int64 = 0
        for round in 1...40 {
            let writes = (3 * round..<3 * round + 3).map { number in
                """
                BEGIN IMMEDIATE; INSERT INTO teams (id, name) VALUES (\(number), 'T\(number)');
                UPDATE players SET team = \(number); COMMIT;
                """
            }
            async let written: Void = Self.run(writes.joined(), file)
            let (teams, players) = try await Self.rows(of: live)
            let player = try #require(players.values.first)
            guard case .integer(let team) = player.attributes["team"] else {
                Issue.record("a player without a team")
                break
            }
            #expect(teams[.integer(team)] != nil)
            // What wrote the player wrote the newest team.
            #expect(teams[.integer(team + 1)] == nil)
            newest = max(newest, team)
            try await written
        }
        #expect(newest > 3)
        #expect(live.logLines.allSatisfy { !$0.contains("storage") })
        #expect(live.logLines.allSatisfy { !$0.contains("nextInSeconds") })
        await live.stop()
    }

    private typealias Rows = [RecordID: RecordEntry]

    /// Teams and players as a new device has them. What is accepted between the fixing of a moment and
    /// the end of the server's work on it comes in a part of its own.
    private static func rows(of live: LiveServer) async throws -> (teams: Rows, players: Rows) {
        var rows: [String: Rows] = [:]
        var revision: Revision = 0
        while true {
            let text = try await live.sync(
                #"{"protocol":1,"maxRevision":\#(revision),"rows":true,"changeSets":[]}"#)
            #expect(text.status == 200)
            let answer = try SyncCoder.decodeAnswer(Array(text.body.utf8))
            for type in answer.changeSets.flatMap(\.types) {
                for entry in type.entries { rows[type.name, default: [:]][entry.id] = entry }
            }
            guard answer.more else { return (rows["teams"] ?? [:], rows["players"] ?? [:]) }
            revision = answer.maxRevision
        }
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
