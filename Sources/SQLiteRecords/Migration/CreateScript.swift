internal import MartletModel
package import SQLiteKit

/// Runs scripts that consist only of CREATE statements.
package enum CreateScript {
    /// The error of a statement that SQLite refused while it ran.
    package struct Refusal: Error {
        package let error: SQLiteError
        /// The statement; nil if the text could not even be compiled.
        package let statement: CreateStatement?
    }

    /// Runs every statement of a script. A refused statement ends it. The effects of earlier
    /// statements stay, so the caller must have a transaction open.
    /// - Parameter what: The script's name in a sentence: “the schema”.
    /// - Throws: `SchemaError` for other statements, and for names that are Martlet's own;
    ///   `Refusal` for a statement that SQLite refused.
    package static func run(_ script: String, on connection: Connection, what: String) throws {
        if script.utf8.contains(0) {
            throw SchemaError("\(what) contains a NUL character; remove it")
        }
        var current: CreateStatement?
        do {
            try connection.execute(script: script) { text in
                current = nil
                current = try checked(text, what: what)
            }
        } catch let error as SQLiteError {
            throw Refusal(error: error, statement: current)
        }
    }

    private static func checked(_ text: String, what: String) throws -> CreateStatement {
        guard let statement = CreateStatement(text) else {
            // An empty statement before this one appears as a leading semicolon.
            let shown = text.drop { $0 == ";" || $0.isWhitespace }.prefix(24)
            throw SchemaError(
                """
                \(what) contains a statement other than CREATE (“\(shown)…”); keep only CREATE \
                statements in it
                """)
        }
        if statement.isTemporary {
            throw SchemaError("\(what) creates something temporary; remove that statement")
        }
        if let database = statement.database, SQLName.folded(database) != "main" {
            throw SchemaError(
                "\(what) creates something in the database “\(database)”; leave that name out")
        }
        for name in [statement.name, statement.table ?? ""] where isOwn(name) {
            throw SchemaError(
                """
                “\(name)” starts with “\(ReservedWords.prefix)”, which is kept for Martlet's own; \
                give it another name
                """)
        }
        return statement
    }

    /// Returns whether a name is one of Martlet's own.
    package static func isOwn(_ name: String) -> Bool {
        SQLName.folded(name).hasPrefix(ReservedWords.prefix)
    }
}
