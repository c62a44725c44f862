internal import AllocationCounter
internal import MartletStore
internal import SQLiteKit

/// Something the store does, done twice: what is prepared shows the first time, what it costs from
/// then on the second time.
struct Operation {
    let name: String
    /// Rows that are there before; `true` when it reads only.
    let isReading: Bool
    let run: @Sendable (_ round: Int, _ context: ReadContext) throws -> Void

    static let rows = 1_000

    static func reading(
        _ name: String, _ run: @escaping @Sendable (Int, ReadContext) throws -> Void
    ) -> Operation {
        Operation(name: name, isReading: true, run: run)
    }

    static func writing(
        _ name: String, _ run: @escaping @Sendable (Int, WriteContext) throws -> Void
    ) -> Operation {
        Operation(name: name, isReading: false) { round, context in
            guard let context = context as? WriteContext else { return }
            try run(round, context)
        }
    }

    func counts(on pool: DatabasePool) async throws -> Counts {
        let first = try await round(0, on: pool)
        let second = try await round(1, on: pool)
        return Counts(
            prepared: first.prepared, steps: second.steps, allocations: second.allocations)
    }

    private func round(_ round: Int, on pool: DatabasePool) async throws -> Counts {
        let run = run
        guard isReading else {
            return try await pool.write { try Self.counted(round, $0, run) }
        }
        return try await pool.read { try Self.counted(round, $0, run) }
    }

    private static func counted(
        _ round: Int, _ context: ReadContext, _ run: (Int, ReadContext) throws -> Void
    ) throws -> Counts {
        let connection = context.session.connection
        _ = connection.takeVirtualMachineSteps()
        let (prepared, allocations) = (connection.preparedStatements, allocations_of_thread())
        try run(round, context)
        return Counts(
            prepared: connection.preparedStatements - prepared,
            steps: connection.takeVirtualMachineSteps(),
            allocations: Int(allocations_of_thread() - allocations))
    }
}

extension Operation {
    private static func scores(_ round: Int) -> [Score] {
        (round * rows..<(round + 1) * rows).map { Score($0) }
    }

    /// All operations, in an order in which each finds what it needs.
    static let all: [Operation] = [
        // Made on first use; what that costs is not counted.
        writing("insert one record") { round, context in
            try Score.table.insert(Score(1_000_000 + round), in: context)
        },
        writing("insert 1,000 records") { round, context in
            try Score.table.insert(contentsOf: scores(round), in: context)
        },
        writing("insert 1,000 rows, prepared") { round, context in
            let insert = try context.prepare(
                "INSERT INTO scores (id, team, name, points, active) VALUES (?, ?, ?, ?, ?)")
            for score in scores(round + 2) {
                try insert.run(score.id, score.team, score.name, score.points, score.active)
            }
        },
        writing("update 1,000 records by key") { round, context in
            for var score in scores(round) {
                score.points += 1
                try Score.table.update(score, in: context)
            }
        },
        writing("upsert 1,000 records that are there") { round, context in
            for score in scores(round) { try Score.table.upsert(score, in: context) }
        },
        reading("read 1,000 records") { _, context in
            _ = try Score.table.all(limit: rows, in: context)
        },
        reading("read 1,000 rows as values") { _, context in
            _ = try context.rows("SELECT * FROM scores LIMIT 1000")
        },
        reading("1,000 look-ups by key") { _, context in
            for number in 0..<rows {
                _ = try Score.table.find("score-number-\(number)", in: context)
            }
        },
        reading("the first record of a condition") { _, context in
            _ = try Score.table.first(
                where: Condition(sql: "team = ?", arguments: [3]), in: context)
        },
        reading("count") { _, context in _ = try Score.table.count(in: context) },
        writing("delete 1,000 records by key") { round, context in
            for score in scores(round) { try Score.table.delete(score.id, in: context) }
        },
    ]
}
