internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import SQLiteKit
internal import SQLiteRecords

/// Finds the rows of one data set's file that devices do not receive, and the tables that cannot
/// take new rows.
struct RowCheck {
    /// The data set's name.
    let name: String
    let connection: Connection

    func findings() throws -> [Finding] {
        // One transaction reads everything at one moment, because a server may be writing.
        try connection.beginReading()
        defer { connection.rollback() }
        let schema = try SchemaReader.read(connection)
        var found = try counters()
        for type in schema.types {
            let (unsendable, unknown) = try rows(of: type)
            if let finding = Self.finding(name, unsendable, of: type) { found.append(finding) }
            if let finding = try notes(of: type, unknown: unknown) { found.append(finding) }
        }
        return found
    }

    private func counters() throws -> [Finding] {
        let counters = try connection.integer(
            "SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'")
        guard counters == 1 else { return [] }
        let full = try connection.prepare(
            "SELECT name FROM main.sqlite_sequence WHERE seq = \(Int64.max) ORDER BY name"
        ).rows { (row) throws(SQLiteError) in row.text(0) }
        return full.map { table in
            Finding(
                .error, "sequence",
                what:
                    "“\(name)”: AUTOINCREMENT of \(table) is at the greatest key that SQLite has.",
                why:
                    "Programs and triggers that insert a row without a key fail: “database or disk is full”.",
                fix: """
                    Delete the row with the greatest key, if it was a mistake. Then set seq of \(table) in \
                    sqlite_sequence to the greatest key that is left.
                    """)
        }
    }

    private typealias Fault = (id: String, reason: String)

    /// Returns the rows that devices cannot receive, and the number of rows that neither the log
    /// nor a note knows.
    private func rows(of type: EntityType) throws -> (unsendable: [Fault], unknown: Int) {
        var unsendable: [Fault] = []
        var unknown = 0
        let known = try connection.prepare(
            """
            SELECT EXISTS (SELECT 1 FROM martlet_records AS r JOIN martlet_types AS t ON t.number = r.type
                WHERE t.name = ?1 AND r.id = ?2 AND r.deleted = 0)
            """)
        let notes = try notedKeys(of: type)
        let table = RecordTable(type: type, connection: connection, rowBytes: Limits.rowBytes)
        do {
            try table.forEach(unsendable: { unsendable.append(($0.description, $1.message)) }) {
                id, _ in
                if let fault = SendableKey.fault(of: id, type, greatest: Limits.greatestKey) {
                    return unsendable.append((id.description, fault))
                }
                known.bind(1, text: type.name)
                known.bind(2, id)
                defer { known.reset() }
                guard try known.step(), known.integer(0) == 0, !notes.contains(id) else { return }
                unknown += 1
            }
        } catch let error as SQLiteError where error.isMismatch {
            unsendable.append(("a row", error.message))
        }
        return (unsendable, unknown)
    }

    private func notedKeys(of type: EntityType) throws -> Set<RecordID> {
        let find = try connection.prepare(
            """
            SELECT DISTINCT id FROM martlet_outside
            WHERE type = (SELECT number FROM martlet_types WHERE name = ?1)
            """)
        find.bind(1, text: type.name)
        return Set(
            try find.rows { (row) throws(SQLiteError) in try? row.recordID(0) }.compactMap(\.self))
    }

    private static func finding(
        _ name: String, _ rows: [Fault], of type: EntityType
    ) -> Finding? {
        guard let first = rows.first else { return nil }
        return Finding(
            .warning, "unsendable",
            what: """
                “\(name)”: devices cannot be sent \(rows.count) rows of \(type.name), such as \(first.id): \
                \(first.reason).
                """,
            why: """
                The server leaves such rows out. Devices that see everything keep what they have of them; \
                devices that see a part by policies remove them.
                """,
            fix: "Correct the rows; devices then receive them.")
    }

    /// Returns a finding if the log lacks existing rows or has rows that are gone, and no note of
    /// an external write names them.
    private func notes(of type: EntityType, unknown: Int) throws -> Finding? {
        let (table, key) = (SQLName.quoted(type.name), SQLName.quoted(type.key))
        let find = try connection.prepare("SELECT number FROM martlet_types WHERE name = ?")
        find.bind(1, text: type.name)
        guard let number = try find.rows({ (row) throws(SQLiteError) in row.integer(0) }).first
        else {
            return nil
        }
        let logged = "SELECT id FROM martlet_records WHERE type = \(number) AND deleted = 0"
        let present = "SELECT \(key) FROM \(table) WHERE \(key) IS NOT NULL"
        let gone =
            try connection.integer(
                """
                SELECT count(*) FROM (\(logged) EXCEPT \(present)
                    EXCEPT SELECT id FROM martlet_outside WHERE type = \(number))
                """) ?? 0
        guard unknown > 0 || gone > 0 else { return nil }
        return Finding(
            .error, "unnoted",
            what: """
                “\(name)”: the log does not know \(unknown) rows of \(type.name), and \(gone) that it knows are \
                gone.
                """,
            why: """
                Another program wrote them without Martlet's triggers, or somebody emptied martlet_outside. \
                Devices do not hear of these writes.
                """,
            fix: """
                Note them again, then look with martlet doctor: INSERT INTO martlet_outside (type, id) \
                SELECT \(number), id FROM (SELECT * FROM (\(logged) EXCEPT \(present)) UNION ALL \
                SELECT * FROM (\(present) EXCEPT \(logged)));
                """)
    }
}
