import PostgresKit

/// The effect of TRUNCATE on a synchronised table.
package enum Truncation: String, Hashable, Sendable, CaseIterable {
    /// It fails with a message.
    case refuse
    /// It deletes all rows on devices, too.
    case delete
}

extension Truncation {
    /// Returns the choice for a table.
    static func of(
        _ table: PostgresTable, _ connection: PostgresConnection
    ) throws(PostgresError) -> Truncation {
        let rows = try connection.query(
            "SELECT truncation FROM _martlet.types WHERE number = $1", [.integer(table.number)])
        return Truncation(rawValue: try rows.text(0, 0)) ?? .refuse
    }

    /// The effect that the triggers give it.
    var triggers: ExternalTriggers.Truncation {
        switch self {
        case .refuse: .refused
        case .delete: .deletes
        }
    }
}
