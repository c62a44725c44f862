package import MartletModel
package import SQLiteKit

/// The steps from a database's schema to that of a script of CREATE statements.
package struct SchemaPlan {
    private let wanted: Schema
    private let steps: [MigrationSteps.Step]

    /// Computes the steps.
    /// - Throws: `SchemaError` for a script or a change that is refused, `SQLiteError`.
    package init(script: String, for connection: Connection) throws {
        let scratch = try Connection(path: ":memory:")
        do {
            try CreateScript.run(script, on: scratch, what: "the schema")
        } catch let refusal as CreateScript.Refusal {
            // SQLITE_ERROR means that the script is at fault. Other errors come from the machine.
            guard refusal.error.isStatementError else { throw refusal.error }
            throw SchemaError("the schema is not valid SQL: \(refusal.error.message)")
        }
        wanted = try SchemaReader.read(scratch)
        steps = try MigrationSteps(
            from: SchemaObject.all(in: connection), to: SchemaObject.all(in: scratch)
        ).list
    }

    /// Whether the database fits the script already.
    package var isEmpty: Bool { steps.isEmpty }

    /// Runs the steps in one transaction, or in one savepoint if a transaction is open.
    /// - Returns: The new schema of the database.
    /// - Throws: `SchemaError`, `SQLiteError`; nothing is changed then.
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
            // As with the script, another error comes from the machine.
            guard error.isStatementError else { throw error }
            throw SchemaError("\(step.what) cannot be added: \(error.message)")
        }
    }
}
