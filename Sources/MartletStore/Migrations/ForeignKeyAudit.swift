internal import SQLiteKit

/// Finds references whose parent is missing after data statements.
///
/// A synchronised file may have references to records that its device may not see. So only
/// violations count that did not exist before.
struct ForeignKeyAudit {
    private let connection: Connection
    private let before: Set<Violation>

    /// A row that refers to no existing record. A table without rowids has one violation for all
    /// its rows.
    private struct Violation: Hashable {
        let table: String
        let row: Int64?
        let parent: String
        let key: Int64
    }

    /// Notes the violations that exist before the data statements.
    /// - Complexity: O(*n* log *n*), *n* rows with references.
    init(_ connection: Connection) throws {
        self.connection = connection
        before = try Self.violations(connection)
    }

    /// Checks that there are no new violations.
    /// - Throws: `StoreError` `.constraint`, which names the tables.
    func check() throws {
        guard
            let found = try Self.violations(connection).subtracting(before).min(by: {
                ($0.table, $0.row ?? 0) < ($1.table, $1.row ?? 0)
            })
        else { return }
        throw StoreError(
            .constraint,
            "The version's data statements leave a record of “\(found.table)” that refers to no"
                + " record of “\(found.parent)”. Foreign keys are checked, but ON DELETE actions"
                + " do not run in a migration: change or delete such records too.")
    }

    private static func violations(_ connection: Connection) throws -> Set<Violation> {
        do {
            let rows = try connection.prepare("PRAGMA foreign_key_check")
            return Set(
                try rows.rows { (row) throws(SQLiteError) in
                    Violation(
                        table: row.text(0), row: row.isNull(1) ? nil : row.integer(1),
                        parent: row.text(2), key: row.integer(3))
                })
        } catch {
            throw StoreError(error)
        }
    }
}
