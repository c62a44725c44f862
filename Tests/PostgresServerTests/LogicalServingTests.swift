import Foundation
import Martlet
import MartletPostgres
import PostgresKit
import TestDatabases
import Testing
import Waiting

@Suite("Servers that read other programs' writes from the write-ahead log")
struct LogicalServingTests {
    @Test("what other programs write is on a device soon; another server goes on where one stops")
    func serving() async throws {
        let database = try await ServedDatabase(.logical())
        try await ServedDatabase.blocking {
            // Other tests' transactions are waited for.
            let connection = try PostgresConnection(
                database.address, PostgresOptions(statement: nil, lock: nil))
            _ = try CaptureSwitch(on: connection).change(to: .logical)
        }
        let first = try await database.start("a")
        let second = try await database.start("b")
        let device = try await database.device("device", second)
        device.start()
        try await database.program { connection in
            try connection.execute(
                "INSERT INTO teams (name) SELECT 'team ' || n FROM generate_series(1, 1000) AS n")
        }
        try await waitUntil("the device has all rows") {
            try await ServedDatabase.teams(device).count == 1_000
        }
        try await Self.measure(database, device)
        for port in [first, second] {
            try await waitUntil("the slot is read, and the metrics say so") {
                try await ServedDatabase.metric(port, #"martlet_slot_active{data_set="team"}"#) == 1
            }
            #expect(
                try await ServedDatabase.metric(port, #"martlet_slot_lost{data_set="team"}"#) == 0)
        }
        let changing = try await ServedDatabase.blocking {
            let connection = try PostgresConnection(database.address)
            return try? CaptureSwitch(on: connection).change(to: .triggers)
        }
        #expect(changing == nil)

        // Whichever read it, another does now.
        await database.stop()
        try await database.program { connection in
            try connection.execute("UPDATE teams SET score = 100 WHERE id = 8")
        }
        let third = try await database.start("c")
        let other = try await database.device("other", third)
        other.start()
        try await waitUntil("the device has what was written while no server ran") {
            try await other.read { context in
                try context.rows("SELECT 1 FROM teams WHERE score = 100").count
            } == 1
        }
        await device.close()
        await other.close()
        await database.stop()
        try await database.program { connection in
            _ = try PostgresRelease(on: connection).release(name: nil, dropsSurrogates: false)
        }
    }

    /// How soon what another program commits is in the log; and that it reaches the device.
    private static func measure(_ database: ServedDatabase, _ device: MartletClient) async throws {
        var took: [Duration] = []
        for round in 1...6 {
            let condition = round % 2 == 0 ? "true" : "id = 7"
            try await database.program { connection in
                try connection.execute("UPDATE teams SET score = \(round) WHERE \(condition)")
            }
            let start = ContinuousClock.now
            try await waitUntil("the log has them") {
                try await database.column(
                    "SELECT 'yes' FROM _martlet.log HAVING max(revision) > \(round)"
                ).isEmpty == false
            }
            took.append(ContinuousClock.now - start)
            try await waitUntil("the device has them") {
                try await device.read { context in
                    try context.rows(
                        "SELECT 1 FROM teams WHERE score = ?", [.integer(Int64(round))]
                    ).count
                } == (round % 2 == 0 ? 1_000 : 1)
            }
        }
        print("in the log after:", took)
        // Measured 12…60 ms; the limit is for machines that are busy.
        #expect(took.allSatisfy { $0 < .seconds(5) })
    }
}
