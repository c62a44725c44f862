import MartletModel
import MartletServerCore
import PostgresKit

/// Finds the rows that the user's triggers and foreign keys changed apart from a set's statements.
/// Martlet's own triggers note every row while the set is carried out.
enum RowsBehind {
    /// The statement after which rows are noted.
    static let start = PostgresStatement("SELECT set_config('martlet.applying', 'capture', true)")

    /// The statement after which rows are not noted, as at the beginning of a transaction.
    static let end = PostgresStatement("SELECT set_config('martlet.applying', 'on', true)")

    /// The statement that returns the noted rows and deletes the notes.
    static let take = PostgresStatement(
        """
        DELETE FROM _martlet.foreign_changes WHERE transaction = pg_current_xact_id() \
        RETURNING type, id
        """)

    /// Returns the records in the answer to `take`, each once, in order.
    static func addresses(
        _ rows: PostgresRows, _ model: PostgresModel
    ) throws(PostgresError) -> [RecordAddress] {
        var found: Set<RecordAddress> = []
        for row in 0..<rows.count {
            guard let position = model.positions[try rows.integer(row, 0)], !rows.isNull(row, 1),
                let id = model.forms[position].id(stored: try rows.text(row, 1))
            else { continue }
            found.insert(RecordAddress(position, id))
        }
        return found.sorted { left, right in
            left.type == right.type ? left.id < right.id : left.type < right.type
        }
    }
}
