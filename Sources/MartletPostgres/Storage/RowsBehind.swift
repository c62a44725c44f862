import MartletModel
import MartletServerCore
import PostgresKit

/// Finds out what triggers and foreign keys of the user's changed behind the statements of a set:
/// Martlet's own triggers note every row while the set is carried out.
enum RowsBehind {
    /// From here on rows are noted.
    static let start = PostgresStatement("SELECT set_config('martlet.applying', 'capture', true)")

    /// From here on they are not, as at the beginning of a transaction.
    static let end = PostgresStatement("SELECT set_config('martlet.applying', 'on', true)")

    /// Takes what was noted.
    static let take = PostgresStatement(
        """
        DELETE FROM _martlet.foreign_changes WHERE transaction = pg_current_xact_id() \
        RETURNING type, id
        """)

    /// The records named by the answer to `take`, each once, in order.
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
