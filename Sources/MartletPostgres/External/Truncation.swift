import PostgresKit

/// What becomes of TRUNCATE on a synchronised table.
package enum Truncation: String, Hashable, Sendable, CaseIterable {
    /// It fails, with a sentence.
    case refuse
    /// All rows are deleted on devices too.
    case delete
}

extension Truncation {
    /// What was chosen for a table.
    static func of(
        _ table: PostgresTable, _ connection: PostgresConnection
    ) throws(PostgresError) -> Truncation {
        let rows = try connection.query(
            "SELECT truncation FROM _martlet.types WHERE number = $1", [.integer(table.number)])
        return Truncation(rawValue: try rows.text(0, 0)) ?? .refuse
    }

    /// What the triggers do.
    var triggers: ExternalTriggers.Truncation {
        switch self {
        case .refuse: .refused
        case .delete: .deletes
        }
    }
}
