package import MartletServerCore
package import PostgresKit

extension StorageFault {
    /// Makes the fault for an error that PostgreSQL reported, or that kept the program from
    /// reaching it.
    package init(_ error: PostgresError) {
        let kind: Kind =
            switch error.kind {
            case .busy, .timedOut: .busy
            case .statement where error.sqlState == TableNames.state: .changed
            case .full: .full
            case .constraint, .invalidValue: .refused
            // A trigger raised an exception, perhaps on one of Martlet's own tables. The set caused it.
            case .other where error.sqlState?.hasPrefix("P0") == true: .refused
            default: error.endsConnection ? .unreachable : .failed
            }
        // The advice is first for these, because log lines are cut and a statement may be long.
        self.init(
            kind,
            error.kind == .statement || error.kind == .full
                ? "\(Self.advice(error)) \(error.description)"
                : "\(error.description). \(Self.advice(error))")
    }

    /// Makes the fault for an error of the server because of which one set was put off.
    init(puttingOff error: PostgresError) {
        let words: String =
            if error.sqlState == nil {
                """
                A change set is put off alone: \(error.message). Its function should have a clause SET \
                (ALTER FUNCTION … SET …) in place of the command, or put the setting back; none may set \
                martlet.applying.
                """
            } else if error.kind == .busy {
                """
                A change set has been put off \(SlowSets.mostInTheWay) times in a row because something was in \
                its way. Check the triggers of its tables, and who holds locks. \(error.description)
                """
            } else if error.kind == .timedOut {
                """
                A change set took too long and is put off alone. Check the triggers of its tables, and \
                what they wait for. \(error.description)
                """
            } else if error.kind == .full {
                // The disk itself has room.
                """
                A change set found no room and is put off alone. Check the triggers of its tables, the \
                tablespaces that they use, and temp_file_limit. \(error.description)
                """
            } else if ["0A", "0B", "22", "25", "2D", "40", "54", "57", "72", "F0"].contains(
                error.sqlState?.prefix(2))
            {
                """
                A change set is put off alone. Correct the triggers of its tables. \(error.description)
                """
            } else {
                StorageFault(error).description
            }
        self.init(.refused, words)
    }

    private static func advice(_ error: PostgresError) -> String {
        switch error.sqlState {
        case "42703", "42P01", "42704", "42883":
            """
            A table or column is not there. What changed in the data set's own tables is taken up by \
            itself; where this goes on, correct the triggers of your tables, or restart the server.
            """
        case "42501" where error.message.contains("row-level security"):
            """
            A server that does not see all rows would take hidden ones for deleted, so nothing is served \
            until its role bypasses row-level security (ALTER ROLE … BYPASSRLS), or the tables are without it.
            """
        case "3F000" where error.kind != .statement:
            "A schema is not there. Make it, or correct the triggers of your tables."
        case "3F000":
            "The database has no data set: run “martlet postgres init” or “martlet postgres adopt”."
        case "26000":
            """
            A trigger runs DEALLOCATE, or EXECUTE of a prepared statement that is not there: correct the \
            triggers of your tables.
            """
        default: error.remedy
        }
    }
}

/// The meaning of an error in a set's statements for the set.
enum SetError {
    /// The set is the cause: it breaks a rule of the tables.
    case ofTheSet
    /// Another transaction blocked the set, which the device may send again.
    case passing
    /// A statement was cancelled because it took too long. No other transaction blocked it, because
    /// a wait for a lock ends much sooner.
    case tooLong
    /// The server or its tables are not in the state that this set needs.
    case ofTheServer
    /// There was no room for the set's data, or for anything.
    case noRoom
    /// The machine or the connection failed. The error says nothing about the set.
    case fault

    /// The classes of codes that concern a machine or its triggers: memory, files and damage,
    /// foreign tables, another server that a trigger asks, a missing schema, and commands that no
    /// trigger may run. This server continues meanwhile.
    private static let codesOfTheServer: Set<Substring> = [
        "08", "0A", "0B", "25", "28", "2D", "3D", "3F", "40", "53", "55", "57", "58", "72", "F0",
        "HV", "XX",
    ]

    init(_ error: PostgresError) {
        if error.endsConnection {
            self = .fault
            return
        }
        switch error.kind {
        case .invalidValue where error.isOfSetting: self = .ofTheServer
        case .constraint, .invalidValue: self = .ofTheSet
        case .busy: self = .passing
        case .timedOut: self = .tooLong
        case .full: self = .noRoom
        case .forbidden, .statement, .readOnly: self = .ofTheServer
        // If a trigger of another set deallocated the statements, this set fails outside its
        // savepoint.
        case .stalePlan where error.sqlState == "26000": self = .ofTheServer
        // Triggers call each other without end. Other limits concern a value, such as the size of
        // an index's row.
        case .exhausted where error.sqlState == "54001": self = .ofTheServer
        case .other, .exhausted:
            guard let code = error.sqlState?.prefix(2) else {
                self = .fault
                return
            }
            self = Self.codesOfTheServer.contains(code) ? .ofTheServer : .ofTheSet
        default: self = .fault
        }
    }
}

extension PostgresError {
    /// Whether an encoding could not represent a text.
    var concernsEncoding: Bool { sqlState == "22P05" || sqlState == "22021" }

    /// The server's message for a device. It has no values, and names the table if there is one.
    var wordsForDevices: String {
        if isOfSetting { return wordsOfSetting }
        guard let sqlState, sqlState.hasPrefix("22") else {
            guard kind == .constraint, let table, !message.contains("\"\(table)\"") else {
                return message
            }
            return "\(message) of table “\(table)”"
        }
        // The unreadable text is in quotes or after a colon.
        let open = message.split(separator: "\"", omittingEmptySubsequences: false)
        var words = ""
        for (index, part) in open.enumerated() {
            words += index.isMultiple(of: 2) ? String(part) : "“…”"
        }
        return words
    }
}
