package import PostgresKit

/// Makes tables with the user's script, and a data set of them.
package struct PostgresInit {
    private let connection: PostgresConnection
    private let now: Int64

    /// Makes an initialisation on a connection.
    /// - Parameter now: Milliseconds since 1970.
    package init(on connection: PostgresConnection, now: Int64) {
        self.connection = connection
        self.now = now
    }

    /// Runs the script and adopts every table that it makes, in one transaction. Foreign keys
    /// between them become deferrable, so that the order of a set's records does not matter.
    /// Programs that do not defer them see no difference.
    /// - Parameter isDryRun: Whether to roll everything back at the end.
    /// - Throws: `AdoptionError` if there is a data set already, or for tables that cannot be
    ///   adopted; `PostgresError`. Nothing has changed then.
    package func make(
        _ script: String, name: String, isDryRun: Bool = false
    ) throws -> PostgresAdoption.Report {
        if let found = try MartletTables.dataSet(on: connection) {
            throw AdoptionError(
                "the database holds the data set “\(found.name)” already",
                "add tables to it with martlet postgres adopt --tables, change how writes of other programs are "
                    + "found with martlet postgres adopt --cdc, or use another database")
        }
        try checkWords(script)
        do {
            return try connection.transaction {
                let report = try makeOpen(script, name)
                if isDryRun { throw Rehearsal(report: report) }
                return report
            }
        } catch let rehearsal as Rehearsal {
            return rehearsal.report
        }
    }

    /// The error that ends the transaction of a dry run.
    private struct Rehearsal: Error {
        let report: PostgresAdoption.Report
    }

    private func makeOpen(_ script: String, _ name: String) throws -> PostgresAdoption.Report {
        let before = Set(try tables().map(\.oid))
        try connection.execute(script)
        guard connection.isInTransaction else { throw ended }
        // Tables cannot be altered while deferred constraints wait for the script's rows.
        try connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        let new = try tables().filter { !before.contains($0.oid) }
        guard !new.isEmpty else {
            throw AdoptionError("the script makes no table", "write CREATE TABLE statements")
        }
        let deferred = try deferForeignKeys(of: new.map(\.oid))
        var report = try PostgresAdoption(on: connection, now: now).adoptOpen(
            PostgresAdoption.Request(name: name, tables: new.map(\.name)))
        report.steps.insert(contentsOf: deferred, at: 0)
        report.steps.insert("make the script's \(new.count) tables", at: 0)
        return report
    }

    private var ended: AdoptionError {
        AdoptionError(
            "the script ends the transaction it runs in",
            "leave BEGIN, COMMIT and ROLLBACK out; all of it is one transaction anyway")
    }

    /// Refuses statements that would end the transaction half way. Such words in a function's body
    /// do not begin a statement.
    private func checkWords(_ script: String) throws(AdoptionError) {
        for statement in script.split(separator: ";") {
            let words = statement.split(whereSeparator: \.isWhitespace).prefix(2)
            let first = words.first?.uppercased() ?? ""
            let isAlone = statement.split(whereSeparator: \.isWhitespace).count == 1
            if ["COMMIT", "ROLLBACK", "ABORT"].contains(first) || first == "BEGIN" && isAlone
                || first == "START" && words.last?.uppercased() == "TRANSACTION"
            {
                throw ended
            }
        }
    }

    private func tables() throws(PostgresError) -> [(oid: UInt32, name: String)] {
        let rows = try connection.query(
            """
            SELECT c.oid::bigint, n.nspname::text, c.relname::text \
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
            WHERE c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition \
            AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' ORDER BY c.oid
            """)
        var tables: [(UInt32, String)] = []
        for row in 0..<rows.count {
            tables.append(
                (
                    UInt32(try rows.integer(row, 0)),
                    try rows.text(row, 1) + "." + rows.text(row, 2)
                ))
        }
        return tables
    }

    private func deferForeignKeys(of tables: [UInt32]) throws(PostgresError) -> [String] {
        let rows = try connection.query(
            """
            SELECT conrelid::regclass::text, conname::text FROM pg_catalog.pg_constraint \
            WHERE contype = 'f' AND NOT condeferrable AND conrelid = ANY ($1::oid[]) \
            ORDER BY conrelid, conname
            """, [.array(PostgresArray(tables.map { .integer(Int64($0)) }))])
        var steps: [String] = []
        for row in 0..<rows.count {
            let (table, key) = (try rows.text(row, 0), try rows.text(row, 1))
            try connection.execute(
                """
                ALTER TABLE \(table) ALTER CONSTRAINT \(PostgresConnection.quoted(key)) DEFERRABLE
                """)
            steps.append("make the foreign key \(key) of \(table) deferrable")
        }
        return steps
    }
}
