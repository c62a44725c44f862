private import CSQLite

/// A failure that SQLite reported. It says what happened, and in which statement.
public struct SQLiteError: Error, Hashable, Sendable {
    /// SQLite's extended result code.
    public let extendedCode: Int32
    /// SQLite's message. It may name tables and columns, but never bound values.
    public let message: String
    /// The statement, with placeholders in place of values.
    public let sql: String?

    public init(extendedCode: Int32, message: String, sql: String? = nil) {
        self.extendedCode = extendedCode
        self.message = message
        self.sql = sql
    }

    /// The primary result code.
    public var code: Int32 { extendedCode & 0xff }

    /// The part of the extended code beyond the primary one. Swift does not import these macros.
    private var detail: Int32 { extendedCode >> 8 }

    public var isConstraint: Bool { code == SQLITE_CONSTRAINT }
    /// Whether the statement itself is wrong: it has a syntax error, or names something that does
    /// not exist.
    public var isStatementError: Bool { code == SQLITE_ERROR }
    public var isUniqueViolation: Bool {
        isConstraint && [6, 8, 10].contains(detail)  // PRIMARYKEY, UNIQUE, ROWID
    }
    public var isNotNullViolation: Bool { isConstraint && detail == 5 }
    public var isCheckViolation: Bool { isConstraint && detail == 1 }
    public var isForeignKeyViolation: Bool {
        isConstraint && (detail == 3 || detail == 7 && message == Self.foreignKeyMessage)
    }
    /// SQLite's message for a foreign key, also for ON DELETE and ON UPDATE RESTRICT, which SQLite
    /// carries out as triggers.
    private static let foreignKeyMessage = "FOREIGN KEY constraint failed"
    /// Whether a value has another type than the column of a STRICT table accepts.
    public var isTypeViolation: Bool { isConstraint && detail == 12 }
    public var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
    public var isDiskFull: Bool { code == SQLITE_FULL }
    public var isInputOutput: Bool { code == SQLITE_IOERR }
    public var isCorrupt: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }
    /// Whether a virtual table's own data is damaged, and not the file.
    public var isCorruptVirtualTable: Bool { code == SQLITE_CORRUPT && detail == 1 }
    /// Whether the file cannot be opened, or the process may not open it.
    public var isCannotOpen: Bool { [SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH].contains(code) }
    public var isReadOnly: Bool { code == SQLITE_READONLY }
    /// Whether an interrupt stopped the statement.
    public var isInterrupted: Bool { code == SQLITE_INTERRUPT }
    /// Whether the statement was refused because it would change the connection.
    public var isForbidden: Bool { code == SQLITE_MISUSE }
    public var isTooBig: Bool { code == SQLITE_TOOBIG }
    /// Whether a value is not of the kind that its column should hold.
    public var isMismatch: Bool { code == SQLITE_MISMATCH }
    /// Whether a trigger called RAISE.
    public var isRaised: Bool { isConstraint && detail == 7 && !isForeignKeyViolation }
}

extension SQLiteError {
    /// Makes the error for a value in the database that does not fit its column. `message` must not
    /// quote the value.
    public static func mismatch(_ message: String, sql: String? = nil) -> SQLiteError {
        SQLiteError(extendedCode: SQLITE_MISMATCH, message: message, sql: sql)
    }
}

extension SQLiteError {
    /// Makes the error for a PRAGMA that would change a shared connection.
    static func forbidden(pragma: String, sql: String) -> SQLiteError {
        SQLiteError(
            extendedCode: SQLITE_MISUSE,
            message: "PRAGMA \(pragma) changes the connection, which later calls use too",
            sql: sql)
    }
}

extension SQLiteError: CustomStringConvertible {
    public var description: String {
        let suffix = sql.map { " in “\($0)”" } ?? ""
        return "SQLite error \(extendedCode): \(message)\(suffix)"
    }
}
