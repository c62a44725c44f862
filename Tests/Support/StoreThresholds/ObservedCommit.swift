internal import MartletStore
internal import SQLiteKit

/// A commit of one row while somebody observes the table: what the writer and the one reader do for
/// it, the observer's new value included. Memory is not counted, since threads meet here.
enum ObservedCommit {
    static let name = "commit one record with an observer of the count"

    static func counts(on pool: DatabasePool) async throws -> Counts {
        var values = Score.table.observeCount(in: pool).makeAsyncIterator()
        guard var last = try await values.next() else { return none }
        var before = none
        var counts: [Counts] = []
        for round in 0..<2 {
            before = try await total(on: pool)
            try await pool.write {
                _ = try Score.table.insert(Score(2_000_000 + round), in: $0)
            }
            while let next = try await values.next() {
                let isNew = next != last
                last = next
                if isNew { break }
            }
            let after = try await total(on: pool)
            counts.append(
                Counts(
                    prepared: after.prepared - before.prepared, steps: after.steps,
                    allocations: 0))
        }
        return Counts(prepared: counts[0].prepared, steps: counts[1].steps, allocations: 0)
    }

    private static let none = Counts(prepared: 0, steps: 0, allocations: 0)

    /// Of both connections; takes the steps.
    private static func total(on pool: DatabasePool) async throws -> Counts {
        let writer = try await pool.write { taken($0) }
        let reader = try await pool.read { taken($0) }
        return Counts(
            prepared: writer.prepared + reader.prepared, steps: writer.steps + reader.steps,
            allocations: 0)
    }

    private static func taken(_ context: ReadContext) -> Counts {
        let connection = context.session.connection
        return Counts(
            prepared: connection.preparedStatements, steps: connection.takeVirtualMachineSteps(),
            allocations: 0)
    }
}
