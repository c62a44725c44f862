public import MartletModel
package import SQLiteKit

/// An error of the local store. The operation that failed has changed nothing.
///
/// ```swift
/// do {
///     try await pool.write { try players.insert(player, in: $0) }
/// } catch let error as StoreError where error.kind == .constraint {
///     print(error.message, error.constraint?.columns ?? [])
/// }
/// ```
public struct StoreError: Error, Hashable, Sendable {
    /// A kind of error. Later versions may add kinds.
    public struct Kind: Hashable, Sendable {
        let name: String

        /// The schema cannot be used. The message names the table and the reason.
        public static let schema = Kind(name: "schema")
        /// The file is not a database, is damaged, or cannot be opened.
        public static let file = Kind(name: "file")
        /// The call names a table, column, record, index or refused change set that does not exist.
        public static let unknown = Kind(name: "unknown")
        /// An attribute cannot hold a value, or a stored value does not have the requested type.
        public static let value = Kind(name: "value")
        /// A UNIQUE, NOT NULL, CHECK or FOREIGN KEY constraint is violated, or a trigger refused
        /// the write.
        public static let constraint = Kind(name: "constraint")
        /// A statement is not valid SQL, or the caller gave it the wrong number of values.
        public static let statement = Kind(name: "statement")
        /// The changes of one transaction are too many for one change set, or a value is too large
        /// for SQLite.
        public static let tooLarge = Kind(name: "tooLarge")
        /// The disk is full.
        public static let diskFull = Kind(name: "diskFull")
        /// The disk failed, or the operating system forbids reading or writing the file.
        public static let inputOutput = Kind(name: "inputOutput")
        /// Another connection kept the file locked for too long.
        public static let busy = Kind(name: "busy")
        /// The file is open, or can be opened, only for reading.
        public static let readOnly = Kind(name: "readOnly")
        /// A newer version of the app wrote the file.
        public static let newer = Kind(name: "newer")
        /// A hook refused the write.
        public static let vetoed = Kind(name: "vetoed")
        /// The rules of the data set do not let the user make this change. The message says which one,
        /// and `policy` names the restrictive policy, if one forbids it.
        public static let permission = Kind(name: "permission")
        /// The caller used the store in a way that it does not allow: a nested call, a context
        /// outside its closure, or a closed database.
        public static let misuse = Kind(name: "misuse")
        /// The task was cancelled, and its work was stopped.
        public static let cancelled = Kind(name: "cancelled")
        /// The stored data contradicts itself. Report the error with its message.
        public static let inconsistent = Kind(name: "inconsistent")
    }

    /// The remedies for an error.
    public enum Remedy: Hashable, Sendable {
        /// Change the program: names, types, SQL, or the order of calls.
        case correctTheProgram
        /// Change the values, or decide which record is right.
        case correctTheValues
        /// Leave the change out, or ask for the right to make it.
        case askForTheRight
        /// Try again later. Nothing else is needed.
        case retry
        /// Make room on the disk, then try again.
        case freeSpace
        /// Update the app.
        case updateTheApp
        /// Check the file and its disk, and restore a copy of the file if it is damaged.
        case checkTheStorage
        /// Report the error.
        case report
    }

    /// The kind of the error.
    public let kind: Kind
    /// A sentence that says what was expected, what was found, and what to do. It contains no
    /// values of records.
    public package(set) var message: String
    /// SQLite's extended result code, if SQLite reported the error.
    public package(set) var code: Int32?
    /// The statement, with placeholders in place of values.
    public package(set) var sql: String?
    /// The table, if the error is about one.
    public package(set) var table: String?
    /// The key of the record, if the error is about one and its key is known. The key is part of
    /// the record, so only `debugDescription` shows it.
    public package(set) var key: RecordID?
    /// The restrictive policy that does not allow the change, if one does not.
    public package(set) var policy: String?
    /// The violated constraint, if there is one and SQLite reports it.
    public package(set) var constraint: Constraint?
    /// The values bound to the statement. Only `debugDescription` shows them.
    public package(set) var values: [SQLValue] = []

    /// Creates an error with a sentence for its reader.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// The remedy for the error.
    public var remedy: Remedy {
        switch kind {
        case .schema, .unknown, .statement, .misuse: .correctTheProgram
        case .value, .constraint, .tooLarge, .vetoed: .correctTheValues
        case .permission: .askForTheRight
        case .busy, .cancelled: .retry
        case .diskFull: .freeSpace
        case .newer: .updateTheApp
        case .file, .inputOutput, .readOnly: .checkTheStorage
        default: .report
        }
    }
}

extension StoreError: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { message }

    /// The message with all details: code, table, key, statement and values. Only the developer
    /// may see it, because it contains values.
    public var debugDescription: String {
        var text = "StoreError.\(kind.name): \(message)"
        if let code { text += " [SQLite \(code)]" }
        if let table { text += " table: \(table)" }
        if let key { text += " key: \(key)" }
        if let policy { text += " policy: \(policy)" }
        if let sql { text += " sql: \(sql)" }
        if !values.isEmpty { text += " values: \(values)" }
        return text
    }
}

extension StoreError {
    /// Converts an error of SQLite, and adds a sentence that says what to do.
    /// - Parameters:
    ///   - table: The table of the operation, if there is one.
    ///   - key: The record's key, if it is known.
    ///   - values: The values bound to the statement.
    package init(
        _ error: SQLiteError, table: String? = nil, key: RecordID? = nil, values: [SQLValue] = []
    ) {
        let (kind, advice) = Self.judged(error)
        self.init(kind, "\(error.message). \(advice)")
        code = error.extendedCode
        sql = error.sql
        constraint = Constraint(error)
        self.table = table
        self.key = key
        self.values = values
    }

    /// Converts an error of SQLite, and adds the table, key and values to a `StoreError` that has
    /// no table. Returns any other error as it is.
    package static func of(
        _ error: any Error, table: String? = nil, key: RecordID? = nil, values: [SQLValue] = []
    ) -> any Error {
        if let error = error as? SQLiteError {
            return StoreError(error, table: table, key: key, values: values)
        }
        guard var known = error as? StoreError, known.table == nil else { return error }
        known.table = table
        known.key = known.key ?? key
        if known.values.isEmpty { known.values = values }
        return known
    }

    /// Returns the same error with a sentence that names the table of the hook in which it
    /// happened. Nested hooks add this sentence once.
    func met(byHookOf table: String) -> StoreError {
        let beginning = "A write hook of “"
        guard !message.hasPrefix(beginning) else { return self }
        var error = self
        error.message = "\(beginning)\(table)” failed. \(message)"
        return error
    }

    private static func judged(_ error: SQLiteError) -> (Kind, String) {
        if error.isTypeViolation {
            return (.value, "Correct the value, or declare the column otherwise.")
        }
        if error.isRaised { return (.constraint, "A trigger of the database refused it.") }
        if error.isConstraint {
            return (.constraint, "Change the values, or the record they collide with.")
        }
        if error.isMismatch {
            return (.value, "Correct the value, or read it as what it is.")
        }
        if error.isStatementError {
            let names = ["no such table", "no such column", "has no column named"]
            return names.contains { error.message.contains($0) }
                ? (.unknown, "Check the name against the schema.")
                : (.statement, "Correct the statement.")
        }
        if error.isForbidden { return (.misuse, "Leave it out.") }
        if error.isBusy {
            return (.busy, "Another connection holds the file locked; try again.")
        }
        if error.isDiskFull { return (.diskFull, "Make room on the disk, then try again.") }
        if error.isCorrupt {
            return (.file, "Put a copy of the file back, or fetch the data again.")
        }
        if error.isReadOnly { return (.readOnly, "Open the file for writing, or write elsewhere.") }
        if error.isInterrupted { return (.cancelled, "Run it again if it is still wanted.") }
        if error.isCannotOpen { return (.file, "Check the file's path and rights.") }
        if error.isInputOutput {
            return (.inputOutput, "Check the disk, and whether the file is still there.")
        }
        if error.isTooBig { return (.tooLarge, "Keep values this large in files.") }
        return (.inconsistent, "Report this.")
    }
}
