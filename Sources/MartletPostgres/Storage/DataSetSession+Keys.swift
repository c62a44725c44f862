import MartletModel
import PostgresKit

/// A drawing of keys for records of one type.
struct KeyDrawing {
    let type: Int
    let statement: PostgresStatement
}

extension DataSetSession {
    private static let savepoint = PostgresStatement("SAVEPOINT martlet_keys")
    private static let release = PostgresStatement("RELEASE SAVEPOINT martlet_keys")

    /// Returns the drawings of missing keys, given the number that each type needs.
    func drawings(_ counts: [Int]) -> [KeyDrawing] {
        counts.enumerated().compactMap { type, count in
            let lacking = keys.lacking(count, of: type)
            guard lacking > 0 else { return nil }
            return model.forms[type].drawing(lacking, untaken: false).map {
                KeyDrawing(type: type, statement: $0)
            }
        }
    }

    /// Draws the missing keys. If a sequence cannot provide any, there are none, and the
    /// transaction continues.
    func drawKeys(_ counts: [Int]) throws(PostgresError) {
        _ = try run([], drawing: drawings(counts))
    }

    /// Runs statements that must not fail, and then draws keys, in one round trip.
    func run(
        _ statements: [PostgresStatement], drawing drawn: [KeyDrawing]
    ) throws(PostgresError) -> [PostgresRows] {
        guard !drawn.isEmpty else { return try run(statements) }
        var segments = [[Self.savepoint] + drawn.map(\.statement) + [Self.release]]
        if !statements.isEmpty { segments.insert(statements, at: 0) }
        let answers = try run(segments)
        var rows: [PostgresRows] = []
        if !statements.isEmpty {
            rows.reserveCapacity(statements.count)
            for answer in answers[0] { rows.append(try answer.get()) }
        }
        guard try !take(answers[segments.count - 1], of: drawn), drawn.count > 1 else {
            return rows
        }
        // A failing sequence must not prevent the keys of the others.
        for one in drawn where keys.lacking(1, of: one.type) > 0 {
            _ = try take(try run([[Self.savepoint, one.statement, Self.release]])[0], of: [one])
        }
        return rows
    }

    /// Takes the drawn keys.
    /// - Parameter answers: The answers to the savepoint, the drawings and the release.
    /// - Returns: Whether the keys were drawn. The savepoint is gone in either case.
    private func take(
        _ answers: [PostgresConnection.Answer], of drawn: [KeyDrawing]
    ) throws(PostgresError) -> Bool {
        _ = try answers[0].get()
        for (one, answer) in zip(drawn, answers.dropFirst()) {
            switch answer {
            case .success(let rows): try add(rows, toKeysOf: one.type)
            case .failure(let error):
                if case .fault = SetError(error) { throw error }
                _ = try run([PostgresStatement("ROLLBACK TO SAVEPOINT martlet_keys")])
                _ = try run([Self.release])
                return false
            }
        }
        return true
    }

    private func add(_ rows: PostgresRows, toKeysOf type: Int) throws(PostgresError) {
        var drawn: [Int64] = []
        drawn.reserveCapacity(rows.count)
        for row in 0..<rows.count { drawn.append(try rows.integer(row, 0)) }
        keys.add(drawn, of: type)
    }

    /// Draws keys that no record has, in place of those drawn before, because another program has
    /// used keys that PostgreSQL had not given out yet.
    func drawUntakenKeys(_ counts: [Int]) throws(PostgresError) {
        for (type, count) in counts.enumerated() where count > 0 {
            keys.drop(of: type)
            var count = count
            var rounds = 0
            // If a million consecutive keys are taken, a person has to move the sequence.
            while keys.lacking(counts[type], of: type) > 0, rounds < 20,
                let statement = model.forms[type].drawing(count, untaken: true)
            {
                let one = KeyDrawing(type: type, statement: statement)
                guard try take(try run([[Self.savepoint, statement, Self.release]])[0], of: [one])
                else { break }
                count *= 2
                rounds += 1
            }
        }
    }
}
