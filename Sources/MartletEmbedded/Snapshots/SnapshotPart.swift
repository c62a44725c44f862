import MartletModel
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Fills one file of a snapshot, attached to a connection to the data set's file.
struct SnapshotPart {
    let connection: Connection
    /// The name under which the file is attached.
    let database: String

    /// Copies a type's records, their revisions, and the type's number.
    ///
    /// - Parameter condition: Nil for no records, "" for all, or an SQL expression.
    func copy(
        _ type: EntityType, number: Int64, where condition: String?
    ) throws(SQLiteError) {
        let list = try connection.prepare("INSERT INTO \(database).martlet_types VALUES (?1, ?2)")
        list.bind(1, integer: number)
        list.bind(2, text: type.name)
        try list.run()
        guard let condition else { return }
        let table = SQLName.quoted(type.name)
        let key = SQLName.quoted(type.key)
        if condition.isEmpty, !type.attributes.contains(where: \.isGenerated) {
            // In this form SQLite copies whole cells in key order, and does not compile rows
            // (https://sqlite.org/src/file/src/insert.c, xferOptimization).
            try connection.execute("INSERT INTO \(database).\(table) SELECT * FROM main.\(table)")
        } else {
            let columns = [type.key] + type.attributes.filter { !$0.isGenerated }.map(\.name)
            let which = condition.isEmpty ? "" : "WHERE \(condition) "
            try connection.execute(
                """
                INSERT INTO \(database).\(table) (\(SQLName.list(columns))) \
                SELECT \(SQLName.list(columns, of: type.name)) FROM main.\(table) \(which)\
                ORDER BY \(table).\(key)
                """)
        }
        // The plus removes the key's affinity, which would prevent the look-up of ids.
        try connection.execute(
            """
            INSERT INTO \(database).martlet_records \
            SELECT \(number), t.\(key), r.revision FROM \(database).\(table) AS t \
            CROSS JOIN main.martlet_records AS r ON r.type = \(number) AND r.id = +t.\(key) \
            WHERE NOT r.deleted ORDER BY t.\(key)
            """)
        if try count(table) != count("martlet_records WHERE type = \(number)") {
            // The row of an external write is no record before it is in the log.
            try connection.execute(
                """
                DELETE FROM \(database).\(table) WHERE NOT EXISTS (
                    SELECT 1 FROM \(database).martlet_records AS martlet_listed
                    WHERE martlet_listed.type = \(number)
                        AND martlet_listed.id = +\(table).\(key))
                """)
        }
    }

    private func count(_ rest: String) throws(SQLiteError) -> Int64 {
        try connection.integer("SELECT count(*) FROM \(database).\(rest)") ?? 0
    }
}
