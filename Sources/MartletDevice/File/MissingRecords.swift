internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// Records that disappeared with a table which another program dropped. Nobody deleted them.
struct MissingRecords {
    let store: LocalStore
    /// The type's position.
    let type: Int

    private var isMissing: String {
        let described = store.schema.types[type]
        let table = SQLName.quoted(described.name)
        return "type = \(store.numbers[type])"
            + " AND id NOT IN (SELECT \(SQLName.quoted(described.key)) FROM main.\(table))"
    }

    /// Deletes the withheld edits of these records: they disappeared with the table, and nobody can
    /// send them. If a record was deleted before that, its withheld edit stays, because the note of
    /// the deletion is read with it: the server may never have had the record.
    func dropWithheld() throws {
        let isGone = """
            \(isMissing) AND (type, id) NOT IN (SELECT type, id FROM martlet_capture
                WHERE operation = \(CaptureTriggers.Operation.deleted))
            """
        try store.connection.execute(
            """
            DELETE FROM martlet_base WHERE \(isGone)
                AND (type, id) IN (SELECT type, id FROM martlet_withheld)
                AND (type, id) NOT IN (SELECT type, id FROM martlet_changes);
            DELETE FROM martlet_withheld_values WHERE \(isGone);
            DELETE FROM martlet_withheld WHERE \(isGone);
            """)
    }

    /// Forgets the revisions of records that the table does not have, so that a check fetches them.
    func forget() throws {
        try store.connection.execute(
            """
            DELETE FROM martlet_records WHERE \(isMissing)
                AND (type, id) NOT IN (SELECT type, id FROM martlet_base
                    UNION SELECT type, id FROM martlet_changes
                    UNION SELECT type, id FROM martlet_parked_changes
                    UNION SELECT type, id FROM martlet_capture)
            """)
    }
}
