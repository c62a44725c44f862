import MartletModel
package import PostgresKit

/// The triggers by which a table reports external writes.
///
/// They run in the writer's transaction, and only note which record was touched: one row of
/// `_martlet.foreign_changes` for each, and one of `_martlet.foreign_transactions` for the
/// transaction. Most work for one statement at a time, with its rows as a set, so that a bulk
/// UPDATE or COPY costs little; only a changed key is noted row by row. Sessions that replay
/// another server's changes (`session_replication_role = replica`, and subscriptions) do not fire
/// these triggers. For them there is a trigger for each row.
///
/// The functions belong to the role that installs them and run with its rights, so writers of the
/// table need no rights on Martlet's schema. They find the key column by its number, so columns may
/// be renamed, added and dropped.
package enum ExternalTriggers {
    /// The effect of TRUNCATE.
    package enum Truncation: String, Hashable, Sendable, CaseIterable {
        /// It fails with a message.
        case refused
        /// It notes every row as deleted.
        case deletes
    }

    /// Installs the triggers, in place of existing ones.
    /// - Throws: `PostgresError`, for example `.forbidden` if the role does not own the table.
    package static func install(
        on connection: PostgresConnection, table: PostgresTable,
        truncation: Truncation = .refused, capture: ExternalCapture = .triggers
    ) throws(PostgresError) {
        let installation = ExternalTriggerSQL(
            table: table, keyNumber: try keyNumber(on: connection, table), capture: capture,
            truncation: truncation)
        try connection.execute(
            ([installation.dropTriggers, installation.dropFunctions] + installation.functions
                + installation.triggers)
                .joined(separator: ";\n"))
    }

    /// Removes the triggers and functions, if there are any. Notes that are not in the log yet
    /// stay.
    /// - Throws: `PostgresError`, for example `.forbidden` if the role does not own the table.
    package static func remove(
        on connection: PostgresConnection, table: PostgresTable
    ) throws(PostgresError) {
        let installation = ExternalTriggerSQL(
            table: table, keyNumber: 0, capture: .triggers, truncation: .refused)
        try connection.execute(
            installation.dropTriggers + ";\n" + installation.dropFunctions)
    }

    /// Returns the problems of a table's triggers as sentences; none if all is well.
    /// - Throws: `PostgresError` if the catalogue cannot be read.
    package static func verify(
        on connection: PostgresConnection, table: PostgresTable,
        capture: ExternalCapture = .triggers
    ) throws(PostgresError) -> [String] {
        let installation = ExternalTriggerSQL(
            table: table, keyNumber: try keyNumber(on: connection, table), capture: capture,
            truncation: .refused)
        let names = ExternalTriggerSQL.names(capture)
        let rows = try connection.query(
            """
            SELECT t.tgname::text, t.tgenabled::text, p.prosrc, p.prosecdef, \
            p.proname::text, r.rolname::text, \
            pg_catalog.has_table_privilege(p.proowner, '_martlet.foreign_changes', 'INSERT') \
            AND pg_catalog.has_table_privilege(p.proowner, '_martlet.foreign_transactions', \
            'INSERT'), pg_catalog.cardinality(t.tgattr::smallint[]) > 0 \
            FROM pg_catalog.pg_trigger t \
            JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid \
            JOIN pg_catalog.pg_roles r ON r.oid = p.proowner \
            WHERE t.tgrelid = $1::bigint::oid AND NOT t.tgisinternal
            """, [.integer(Int64(table.relation))])
        var problems: [String] = []
        var found: [String: String] = [:]
        for row in 0..<rows.count {
            let name = try rows.text(row, 0)
            guard names.keys.contains(name) else { continue }
            found[name] = try rows.text(row, 1)
            let bodies = installation.bodies(of: name)
            let source = try rows.text(row, 2)
            if !bodies.contains(source) {
                problems.append("trigger “\(name)” runs a function that is not Martlet's")
            }
            if try rows.boolean(row, 7) {
                problems.append("trigger “\(name)” fires only for statements that name the key")
            }
            if try !rows.boolean(row, 3) {
                problems.append("the function of trigger “\(name)” lacks SECURITY DEFINER")
            }
            if try !rows.boolean(row, 6) {
                problems.append(
                    "the owner of trigger “\(name)”'s function may not write to Martlet's schema")
            }
        }
        for (name, enabled) in names.sorted(by: { $0.key < $1.key }) {
            switch found[name] {
            case nil: problems.append("trigger “\(name)” is missing")
            case enabled: break
            default:
                problems.append("trigger “\(name)” is switched off, or fires in other sessions")
            }
        }
        let remedy = "run “martlet postgres adopt” for the table again"
        return problems.map { "table “\(table.type.name)”: \($0); \(remedy)" }
    }

    /// Returns the number of the key column in its table. Renaming does not change it.
    private static func keyNumber(
        on connection: PostgresConnection, _ table: PostgresTable
    ) throws(PostgresError) -> Int64 {
        let rows = try connection.query(
            """
            SELECT attnum::bigint FROM pg_catalog.pg_attribute \
            WHERE attrelid = $1::bigint::oid AND attname = $2::text AND NOT attisdropped
            """, [.integer(Int64(table.relation)), .text(table.key.name)])
        guard rows.count == 1 else {
            throw PostgresError(
                .statement, "table “\(table.type.name)” has no column “\(table.key.name)”")
        }
        return try rows.integer(0, 0)
    }
}
