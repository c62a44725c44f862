public import MartletCore
internal import MartletProtocol
public import SQLiteKit

/// Brings a database to what a script of CREATE statements describes.
///
/// What can be added without touching a record is added: tables, columns, indexes, views,
/// triggers. Anything else (a column dropped or declared anew, another key) is refused: it changes
/// records, and devices with unsent work would not understand it.
public enum SchemaMigration {
    /// Runs in one transaction (or one savepoint, where a transaction is open); doing it again
    /// changes nothing. Indexes, views and triggers the script does not name stay.
    /// - Returns: The schema of the database as it then is.
    /// - Throws: `SchemaError` for a script or a change that is refused, `SQLiteError`; in either
    ///   case nothing has changed.
    public static func apply(script: String, to connection: Connection) throws -> Schema {
        let scratch = try Connection(path: ":memory:")
        try run(script, in: scratch)
        let wanted = try SchemaReader.read(scratch)
        let steps = try MigrationSteps(
            from: SchemaObject.all(in: connection), to: SchemaObject.all(in: scratch))
        connection.clearStatementCache()
        let outer = connection.isInTransaction
        try connection.execute(outer ? "SAVEPOINT martlet_migration" : "BEGIN IMMEDIATE")
        do {
            for step in steps.list {
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

    /// The statements that make the user's tables, indexes, views and triggers anew, each ended
    /// with a semicolon and a line break.
    /// - Parameter triggers: Whether the user's triggers are among them. A device is told what the
    ///   server's triggers did, and must not do it a second time.
    public static func ddl(
        of connection: Connection, triggers: Bool = true
    ) throws(SQLiteError) -> String {
        try SchemaObject.all(in: connection)
            .filter { triggers || $0.kind != .trigger }
            .map { "\($0.sql);\n" }
            .joined()
    }

    private static func run(_ step: MigrationSteps.Step, on connection: Connection) throws {
        do {
            try connection.execute(step.sql)
        } catch {
            // SQLITE_ERROR: the statement itself is at fault. The rest is the machine's.
            guard error.isStatementError else { throw error }
            throw SchemaError("\(step.what) cannot be added: \(error.message)")
        }
    }

    private static func run(_ script: String, in scratch: Connection) throws {
        if script.utf8.contains(0) {
            throw SchemaError("the schema contains a NUL character; remove it")
        }
        do {
            try scratch.execute(script: script) { statement in
                // An empty statement before this one comes as a semicolon of it.
                let tokens = SQLToken.tokens(of: Array(statement.utf8)).drop { $0.isSymbol(";") }
                guard tokens.first?.kind == .word("create") else {
                    throw SchemaError(
                        """
                        the schema contains a statement other than CREATE \
                        (“\(statement.prefix(24))…”); keep only CREATE statements in it
                        """)
                }
                if case .word(let second)? = tokens.dropFirst().first?.kind,
                    second == "temp" || second == "temporary"
                {
                    throw SchemaError(
                        "the schema creates something temporary; remove that statement")
                }
            }
        } catch let error as SQLiteError {
            throw SchemaError("the schema is not valid SQL: \(error.message)")
        }
        let own = try scratch.text(
            "SELECT name FROM sqlite_schema WHERE name LIKE 'martlet\\_%' ESCAPE '\\' LIMIT 1")
        if let own {
            throw SchemaError(
                """
                “\(own)” starts with “\(ReservedWords.prefix)”, which is kept for Martlet's own; \
                give it another name
                """)
        }
    }
}
