import MartletModel
import MartletProtocol
import PostgresKit

extension DataSetSession {
    /// Empties entries of the log; see `ServerStorage.compact`.
    func compact(
        through target: Revision, entries: Int, bytes: Int
    ) throws(PostgresError) -> Int {
        let reached = try end(through: target, entries: entries, bytes: bytes)
        guard reached > floor else { return 0 }
        let answers = try run([
            PostgresStatement(
                """
                UPDATE _martlet.log AS l SET body = '', temporaries = NULL \
                WHERE l.revision > $1 AND l.revision <= $2 AND octet_length(l.body) > 0 \
                AND (l.device = 0 OR l.sequence IS NULL OR l.sequence <= coalesce((\
                SELECT d.acknowledged FROM _martlet.devices AS d WHERE d.number = l.device), 0))
                """, [.integer(floor), .integer(reached)]),
            PostgresStatement(
                "UPDATE _martlet.dataset SET floor = $1 WHERE number = 1", [.integer(reached)]),
        ])
        floor = reached
        return answers[0].affectedCount
    }

    /// Returns the last entry of a step that begins after `floor`.
    private func end(
        through target: Revision, entries: Int, bytes: Int
    ) throws(PostgresError) -> Revision {
        var statements = takePending()
        // PostgreSQL knows the length of a body that is stored apart without reading it.
        statements.append(
            PostgresStatement(
                """
                SELECT l.revision, octet_length(l.body) FROM _martlet.log AS l \
                WHERE l.revision > $1 AND l.revision <= $2 ORDER BY l.revision LIMIT $3
                """, [.integer(floor), .integer(target), .integer(Int64(entries))]))
        var reached = floor
        var passed: Int64 = 0
        guard let rows = try run(statements).last else { return floor }
        for row in 0..<rows.count where passed < Int64(bytes) {
            reached = try rows.integer(row, 0)
            passed += try rows.integer(row, 1)
        }
        return reached
    }
}
