public import MartletModel
package import SQLiteKit

/// A refusal by the local store: nothing was changed.
public struct StoreError: Error, Hashable, Sendable {
    /// What kind of refusal; new kinds may be added.
    public struct Kind: Hashable, Sendable {
        let name: String

        /// The schema cannot be used: the message says which table and why.
        public static let schema = Kind(name: "schema")
        /// The file cannot be used as it is: not a database, damaged, or it cannot be opened.
        public static let file = Kind(name: "file")
        /// No such type, table, column or record.
        public static let unknown = Kind(name: "unknown")
        /// A value the attribute cannot hold, or a value read that is not of the type asked for.
        public static let value = Kind(name: "value")
        /// A UNIQUE, NOT NULL, CHECK or FOREIGN KEY constraint is violated.
        public static let constraint = Kind(name: "constraint")
        /// A statement that is not valid SQL, or got the wrong number of values.
        public static let statement = Kind(name: "statement")
        /// One transaction's changes are too many to send as one change set.
        public static let tooLarge = Kind(name: "tooLarge")
        /// There is no room on the disk.
        public static let diskFull = Kind(name: "diskFull")
        /// The disk failed, or the file may not be read or written.
        public static let inputOutput = Kind(name: "inputOutput")
        /// Another connection kept the file locked for too long.
        public static let busy = Kind(name: "busy")
        /// The file may only be read.
        public static let readOnly = Kind(name: "readOnly")
        /// The file was written by a newer version of the app.
        public static let newer = Kind(name: "newer")
        /// A hook forbade the write.
        public static let vetoed = Kind(name: "vetoed")
        /// The store is used in a way it does not allow: nested, outside its closure, closed.
        public static let misuse = Kind(name: "misuse")
        /// The work was stopped because its task was cancelled.
        public static let cancelled = Kind(name: "cancelled")
        /// What is stored contradicts itself; report it, with the message.
        public static let inconsistent = Kind(name: "inconsistent")
    }

    /// What to do about it.
    public enum Remedy: Hashable, Sendable {
        /// Change the program: names, types, SQL, the order of calls.
        case correctTheProgram
        /// Change the values, or decide which record is right.
        case correctTheValues
        /// Try again later; nothing else is needed.
        case retry
        /// Make room on the disk, then try again.
        case freeSpace
        /// Update the app.
        case updateTheApp
        /// Check the file and its disk; put a copy back.
        case checkTheStorage
        /// Report it.
        case report
    }

    /// What kind of refusal.
    public let kind: Kind
    /// What was expected, what was found, and what to do. Holds no values.
    public package(set) var message: String
    /// SQLite's extended result code, where SQLite refused.
    public package(set) var code: Int32?
    /// The statement, with placeholders in place of values.
    public package(set) var sql: String?
    /// The table, where one is meant.
    public package(set) var table: String?
    /// The key of the record, where one is meant and known. It is part of the record: the
    /// description leaves it out, `debugDescription` shows it.
    public package(set) var key: RecordID?
    /// Which constraint, where one is violated and SQLite tells.
    public package(set) var constraint: Constraint?
    /// The values bound to the statement; only `debugDescription` shows them.
    public package(set) var values: [SQLValue] = []

    /// A refusal with a sentence.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// What to do about it.
    public var remedy: Remedy {
        switch kind {
        case .schema, .unknown, .statement, .misuse: .correctTheProgram
        case .value, .constraint, .tooLarge, .vetoed: .correctTheValues
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

    /// The message with everything known: code, table, key, statement and values. For the
    /// developer's own eyes.
    public var debugDescription: String {
        var text = "StoreError.\(kind.name): \(message)"
        if let code { text += " [SQLite \(code)]" }
        if let table { text += " table: \(table)" }
        if let key { text += " key: \(key)" }
        if let sql { text += " sql: \(sql)" }
        if !values.isEmpty { text += " values: \(values)" }
        return text
    }
}

extension StoreError {
    /// What SQLite refused, as a refusal of the store: with a sentence that says what to do.
    /// - Parameters:
    ///   - table: The table that was worked on, where one was.
    ///   - key: The record's key, where it is known.
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

    /// Any failure, as a refusal of the store where SQLite or the store is at fault.
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

    /// Returns the same error with a sentence that names the hook in which it happened; hooks
    /// within hooks add it once.
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
            return (.file, "Put a copy of the file back, or fetch the data anew.")
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
