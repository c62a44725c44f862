package import MartletModel
package import SQLiteKit

/// What leads from a database's schema to the one a script of CREATE statements describes.
package struct SchemaPlan {
    private let wanted: Schema
    private let steps: [MigrationSteps.Step]

    /// - Throws: `SchemaError` for a script or a change that is refused, `SQLiteError`.
    package init(script: String, for connection: Connection) throws {
        let scratch = try Connection(path: ":memory:")
        do {
            try CreateScript.run(script, on: scratch, what: "the schema")
        } catch let refusal as CreateScript.Refusal {
            // SQLITE_ERROR: the script is at fault. The rest is the machine's.
            guard refusal.error.isStatementError else { throw refusal.error }
            throw SchemaError("the schema is not valid SQL: \(refusal.error.message)")
        }
        wanted = try SchemaReader.read(scratch)
        steps = try MigrationSteps(
            from: SchemaObject.all(in: connection), to: SchemaObject.all(in: scratch)
        ).list
    }

    /// Whether the database is as the script describes it.
    package var isEmpty: Bool { steps.isEmpty }

    /// Runs in one transaction (or one savepoint, where a transaction is open).
    /// - Returns: The schema of the database as it then is.
    /// - Throws: `SchemaError`, `SQLiteError`; in either case nothing has changed.
    package func run(on connection: Connection) throws -> Schema {
        connection.clearStatementCache()
        let outer = connection.isInTransaction
        if outer {
            try connection.execute("SAVEPOINT martlet_migration")
        } else {
            try connection.begin()
        }
        do {
            for step in steps {
                try run(step, on: connection)
            }
            let schema = try SchemaReader.read(connection)
            try SchemaComparison.check(schema, against: wanted)
            try connection.execute(outer ? "RELEASE martlet_migration" : "COMMIT")
            return schema
        } catch {
            if outer {
                try connection.execute("ROLLBACK TO martlet_migration; RELEASE martlet_migration")
            } else {
                connection.rollback()
            }
            throw error
        }
    }

    private func run(_ step: MigrationSteps.Step, on connection: Connection) throws {
        do {
            try connection.execute(step.sql)
        } catch {
            // As with the script.
            guard error.isStatementError else { throw error }
            throw SchemaError("\(step.what) cannot be added: \(error.message)")
        }
    }
}
