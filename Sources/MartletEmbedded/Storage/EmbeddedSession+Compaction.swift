import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

extension EmbeddedSession {
    /// Empties old entries; see `ServerStorage.compact`.
    func compact(
        through target: Revision, entries: Int, bytes: Int
    ) throws(SQLiteError) -> Int {
        let reached = try end(of: floor, through: target, entries: entries, bytes: bytes)
        guard reached > floor else { return 0 }
        let emptying = try connection.statement(
            """
            UPDATE martlet_log SET body = x'', temporaries = NULL \
            WHERE revision > ?1 AND revision <= ?2 AND length(body) > 0 \
            AND (device = 0 OR sequence IS NULL OR sequence <= ifnull((SELECT acknowledged \
            FROM martlet_devices WHERE number = device), 0))
            """)
        defer { emptying.reset() }
        emptying.bind(1, integer: floor)
        emptying.bind(2, integer: reached)
        while try emptying.step() {}
        let emptied = Int(connection.changes)
        let noting = try connection.statement(
            "INSERT OR REPLACE INTO martlet_meta (key, value) VALUES ('floor', ?1)")
        defer { noting.reset() }
        noting.bind(1, integer: reached)
        while try noting.step() {}
        floor = reached
        return emptied
    }

    /// Returns the last entry of a step that begins after `floor`.
    private func end(
        of floor: Revision, through target: Revision, entries: Int, bytes: Int
    ) throws(SQLiteError) -> Revision {
        // The length of a blob is in the row's header, so SQLite does not read the blob itself.
        let statement = try connection.statement(
            """
            SELECT revision, length(body) FROM martlet_log \
            WHERE revision > ?1 AND revision <= ?2 ORDER BY revision LIMIT ?3
            """)
        defer { statement.reset() }
        statement.bind(1, integer: floor)
        statement.bind(2, integer: target)
        statement.bind(3, integer: Int64(entries))
        var reached = floor
        var passed = 0
        while passed < bytes, try statement.step() {
            reached = statement.integer(0)
            passed += Int(statement.integer(1))
        }
        return reached
    }

    /// Empties entries that compaction had passed over because their author had not acknowledged
    /// them.
    func empty(
        _ device: KnownDevice, acknowledging sequence: Int64
    ) throws(SQLiteError) {
        let statement = try connection.statement(
            """
            UPDATE martlet_log SET body = x'', temporaries = NULL \
            WHERE device = ?1 AND device <> 0 AND sequence > ?2 AND sequence <= ?3 \
            AND sequence IS NOT NULL AND revision <= ?4
            """)
        defer { statement.reset() }
        statement.bind(1, integer: device.number)
        statement.bind(2, integer: device.acknowledged)
        statement.bind(3, integer: sequence)
        statement.bind(4, integer: floor)
        while try statement.step() {}
    }

    /// Gives a record a place in differences, because a new column gave it a value.
    func announce(_ address: RecordAddress, at revision: Revision) throws(SQLiteError) {
        let statement = try connection.statement(
            "INSERT INTO martlet_announced (revision, type, id) VALUES (?1, ?2, ?3)")
        defer { statement.reset() }
        statement.bind(1, integer: revision)
        statement.bind(2, integer: numbers[address.type])
        statement.bind(3, address.id)
        while try statement.step() {}
    }
}
