import MartletModel
internal import MartletServerCore
import PostgresKit

/// The comparison of rows that no device can receive.
extension PostgresComparison {
    /// Returns SQL for the ids of rows whose keys no record can have, and of records that are marked as left out
    /// of the log. Records with a note that the log has not taken in yet are not among them.
    static func leftOut(_ table: PostgresTable) -> String {
        let key = "t.\(table.key.sqlName)"
        let isOdd = table.type.keyKind == .integer ? "\(key) <= 0" : "\(key)::text = ''"
        return """
            SELECT \(key)::text FROM \(table.sqlName) AS t WHERE \(isOdd) \
            UNION ALL SELECT r.id FROM _martlet.records AS r WHERE r.type = \(table.number) \
            AND r.others = \(RowFacts.leftOut) AND NOT r.deleted AND EXISTS (SELECT \
            FROM \(table.sqlName) AS t WHERE \(key)::text COLLATE "C" = r.id) \
            AND NOT EXISTS (SELECT FROM _martlet.foreign_changes AS c \
            WHERE c.type = \(table.number) AND c.id = r.id)
            """
    }

    func addLeftOut(to found: inout Differences) throws(PostgresError) {
        for table in schema.tables {
            let rows = try connection.query(
                """
                SELECT d.id, count(*) OVER () FROM (\(Self.leftOut(table))) AS d (id) \
                ORDER BY d.id LIMIT \(Self.mostNamed)
                """)
            guard rows.count > 0 else { continue }
            found.leftOut += try rows.integer(0, 1)
            for row in 0..<rows.count where found.records.count < Self.mostNamed {
                found.records.append(
                    .init(
                        type: table.type.name, id: try rows.text(row, 0), isDeleted: false,
                        isLeftOut: true))
            }
        }
    }

    /// Notes the records that are marked as left out, within the open transaction. Their rows may
    /// have been corrected without a note, or the column that could not be sent may be gone.
    /// - Parameter wanted: The tables' numbers; nil for all.
    func enterLeftOut(of wanted: Set<Int64>? = nil) throws(PostgresError) {
        var isNoted = false
        for table in schema.tables where wanted?.contains(table.number) ?? true {
            let noted = try connection.query(
                """
                INSERT INTO _martlet.foreign_changes (type, id) SELECT r.type, r.id \
                FROM _martlet.records AS r WHERE r.type = \(table.number) \
                AND r.others = \(RowFacts.leftOut) AND NOT r.deleted
                """
            ).affectedCount
            isNoted = isNoted || noted > 0
        }
        if isNoted { try noteTransaction() }
    }
}
