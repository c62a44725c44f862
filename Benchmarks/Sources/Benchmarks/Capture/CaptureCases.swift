import CLoad
import Foundation
import Martlet
import MartletModel
import MartletStore

/// What capture costs a program that writes to a device's file with SQLite's own calls: the same
/// statements with and without the triggers, in pairs.
enum CaptureCases {
    private static let pairs = 9
    private static let rows = 100_000

    /// The table: a row with text keys in no order costs SQLite itself twice as much.
    private enum Keys: String, CaseIterable {
        case integers = "integer keys"
        case texts = "text keys in no order"
    }

    private static let schema =
        Organisation.schema + """
            CREATE TABLE members (
                id TEXT PRIMARY KEY, team INTEGER NOT NULL REFERENCES teams(id),
                first_name TEXT NOT NULL, last_name TEXT NOT NULL, birthday TEXT, shirt INTEGER,
                active BOOLEAN, email TEXT, note TEXT
            );
            """

    private struct Sample {
        var bare: Double
        var captured: Double
    }

    @Sendable static func run() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-capture-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let works: [(String, rows_work, String)] = [
            ("inserts", rows_insert, "30 %"),
            ("updates of one attribute", rows_update, "70 %"),
            ("updates of four attributes", rows_update_wide, "70 %"),
        ]
        for keys in Keys.allCases {
            for (name, work, expected) in works {
                let title = "capture/100,000 \(name), \(keys.rawValue)"
                try await compare(title, work, keys, folder: folder, expected: expected)
            }
        }
        try await wholeWrite(folder: folder)
    }

    private static func compare(
        _ title: String, _ work: rows_work, _ keys: Keys, folder: URL, expected: String
    ) async throws {
        var samples: [Sample] = []
        for pair in 0...pairs {
            let bare = try await measure(work, keys, capture: false, folder: folder)
            let captured = try await measure(work, keys, capture: true, folder: folder)
            if pair > 0 { samples.append(Sample(bare: bare, captured: captured)) }
        }
        try Measurement(
            "\(title), without triggers: CPU", unit: "s", samples: samples.map(\.bare)
        ).report()
        try Measurement(
            "\(title), captured: CPU", unit: "s", samples: samples.map(\.captured)
        ).report()
        try Measurement(
            "\(title): added CPU", unit: "%",
            samples: samples.map { ($0.captured / $0.bare - 1) * 100 }, expected: expected
        ).report()
    }

    /// CPU seconds of the statements, in one transaction.
    private static func measure(
        _ work: rows_work, _ keys: Keys, capture: Bool, folder: URL
    ) async throws -> Double {
        let path = folder.appendingPathComponent("\(UUID().uuidString).sqlite").path
        defer {
            ["", "-wal", "-shm"].forEach { try? FileManager.default.removeItem(atPath: path + $0) }
        }
        let client =
            capture
            ? try await MartletClient.open(path: path, schema: schema, transport: nil) : nil
        if !capture { try check(rows_execute(path, schema)) }
        let teams = (1...Organisation.teams).map { "(\($0), 'Team \($0)')" }
        if capture { try check(rows_execute(path, "UPDATE martlet_control SET capture = 0")) }
        try check(rows_execute(path, "INSERT INTO teams VALUES \(teams.joined(separator: ","))"))
        var result = floor_result()
        let isText: Int32 = keys == .texts ? 1 : 0
        if work != rows_insert {
            try check(rows_run(path, rows_insert, isText, Int32(rows), &result))
        }
        if capture { try check(rows_execute(path, "UPDATE martlet_control SET capture = 1")) }
        try check(rows_execute(path, "PRAGMA wal_checkpoint(TRUNCATE)"))
        try check(rows_run(path, work, isText, Int32(rows), &result))
        if let client {
            let noted = try await client.read { context in
                try context.rows("SELECT count(*) AS noted FROM martlet_capture")
            }
            await client.close()
            guard try noted.first?.value("noted", as: Int.self) == rows else {
                throw BenchmarkFailure("Not each of the \(rows) rows was captured.")
            }
        }
        return result.processor_seconds
    }

    private static func check(_ code: Int32) throws {
        guard code == 0 else { throw BenchmarkFailure("SQLite failed with code \(code).") }
    }

    /// Such inserts as local saves: rows, capture, and the change sets made of them. Two, because
    /// a change set has a limit of bytes.
    private static func wholeWrite(folder: URL) async throws {
        var samples: [Double] = []
        for _ in 0..<5 {
            let path = folder.appendingPathComponent("\(UUID().uuidString).sqlite").path
            let client = try await MartletClient.open(
                path: path, schema: Organisation.schema, transport: nil)
            let start = Machine.processorSeconds
            for half in 0..<2 {
                try await client.write { context in
                    let team = try context.insert("teams", ["name": "Falcons"])
                    for number in (half * rows / 2)..<((half + 1) * rows / 2) {
                        try context.insert("players", player(number, team: team))
                    }
                }
            }
            samples.append(Machine.processorSeconds - start)
            await client.close()
        }
        try Measurement(
            "capture/100,000 inserts in two local saves, change sets made: CPU", unit: "s",
            samples: samples
        ).report()
    }

    private static func player(
        _ number: Int, team: RecordID
    ) -> RecordValues {
        [
            "team": team.sqlValue, "first_name": .text("First\(number % 977)"),
            "last_name": .text("Last\(number % 4_993)"), "birthday": .text("2011-10-12"),
            "shirt": .integer(Int64(number % 99)), "active": true,
            "email": .text("player\(number)@example.org"),
            "note": .text("A note of some length about player \(number) of the team"),
        ]
    }
}
