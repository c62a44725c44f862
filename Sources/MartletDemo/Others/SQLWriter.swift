import PostgresKit
import RandomKit
import Synchronization

/// A program that does not know Martlet and writes plain SQL to the database: a web application
/// with small transactions, or an analyst whose statements change many rows.
final class SQLWriter: Sendable {
    private struct State {
        var marks = OtherMarks()
        var rows = 0
        var random: SplitMix64
    }

    private let address: PostgresAddress
    private let name: String
    private let tag: String
    private let state: Mutex<State>

    /// - Parameter name: `web` or `analyst`.
    init(_ address: PostgresAddress, name: String, tag: String, seed: UInt64) {
        self.address = address
        self.name = name
        self.tag = tag
        state = Mutex(State(random: SplitMix64(seed: seed)))
    }

    var marks: OtherMarks { state.withLock { $0.marks } }
    var rowsWritten: Int { state.withLock { $0.rows } }

    /// Writes until `isOver` returns true. It opens a lost connection again, as any program does.
    func run(until isOver: @Sendable () -> Bool) async throws {
        var number = 0
        var connection: PostgresConnection?
        while !isOver() {
            number += 1
            let mark = "mark-\(tag)-\(name)-\(number);"
            do {
                let current = try connection ?? PostgresConnection(address)
                connection = current
                let rows = try current.transaction { try write(mark, number, on: current) }
                if let rows {
                    state.withLock { state in
                        state.marks.confirmed.append(mark)
                        state.rows += rows
                    }
                }
            } catch let error as PostgresError {
                if error.kind == .unknownOutcome {
                    state.withLock { $0.marks.unknown.append(mark) }
                }
                guard error.mayPass || error.kind == .unknownOutcome || error.kind == .lost else {
                    throw error
                }
                connection?.close()
                connection = nil
            }
            try await Task.sleep(for: name == "web" ? .milliseconds(40) : .milliseconds(700))
        }
        connection?.close()
    }

    /// - Returns: The number of rows written; nil if somebody deleted the player meanwhile.
    private func write(
        _ mark: String, _ number: Int, on connection: PostgresConnection
    ) throws -> Int? {
        _ = try connection.query("SELECT set_config('martlet.author', $1, true)", [.text(name)])
        let draw = state.withLock { state in Int64.random(in: 1...200, using: &state.random) }
        // Nobody can delete the player before the transaction ends.
        let found = try connection.query(
            """
            SELECT id FROM players ORDER BY id
            OFFSET $1 % (SELECT greatest(count(*), 1) FROM players) LIMIT 1 FOR KEY SHARE
            """, [.integer(draw)])
        guard found.count == 1 else { return nil }
        let player = try found.integer(0, 0)
        let note = """
            INSERT INTO notes (player_id, written_at, body) VALUES ($1, now(), $2)
            """
        var rows = try connection.query(note, [.integer(player), .text(mark)]).affectedCount
        if name == "web" {
            rows += try connection.query(
                "UPDATE players SET height_cm = coalesce(height_cm, 150) + 1 WHERE id = $1",
                [.integer(player)]
            ).affectedCount
        } else {
            rows += try connection.query(
                """
                UPDATE attendances SET load = coalesce(load, 0) + 1
                WHERE id IN (SELECT id FROM attendances ORDER BY id OFFSET $1 LIMIT 200)
                """, [.integer(draw)]
            ).affectedCount
            if number.isMultiple(of: 3) {
                rows += try connection.query(
                    """
                    DELETE FROM attendances WHERE id =
                        (SELECT id FROM attendances WHERE id > $1 ORDER BY id LIMIT 1)
                    """, [.integer(player * 3)]
                ).affectedCount
            }
        }
        return rows
    }
}
