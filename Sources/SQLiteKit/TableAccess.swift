internal import CSQLite

/// The tables that a statement reads and writes, as SQLite's authorizer reported them when the
/// statement was prepared.
public struct TableAccess: Hashable, Sendable {
    /// Tables and views the statement reads, those read by its triggers included.
    public internal(set) var reads: Set<String> = []
    /// Tables the statement itself writes.
    public internal(set) var writes: Set<String> = []
    /// The tables whose rows may change without a report by the update hook: those written by
    /// triggers, those whose rows a REPLACE may push out, and those whose rowids are set
    /// (https://sqlite.org/c3ref/update_hook.html).
    public internal(set) var unclearWrites: Set<String> = []
    /// The tables that triggers and views write, each under the name of the innermost trigger or view.
    public internal(set) var triggeredWrites: [String: Set<String>] = [:]
    /// The columns that the statement's own updates set, by table.
    public internal(set) var updatedColumns: [String: Set<String>] = [:]
    /// Whether the statement changes the schema.
    public internal(set) var changesSchema = false
    /// Whether the statement begins or ends a transaction or a savepoint.
    public internal(set) var controlsTransaction = false

    /// The tables that the statement makes, changes or drops, and those whose indexes it makes or
    /// drops.
    public internal(set) var changedTables: Set<String> = []
    /// The triggers and views that the statement makes or drops, and the tables and views of the triggers.
    public internal(set) var changedObjects: Set<String> = []
    /// Temporary tables and views that the statement makes. They hide others of the same name.
    public internal(set) var temporaries: Set<String> = []
    /// Whether the statement attaches another database, or detaches one.
    public internal(set) var attaches = false
    /// The PRAGMA that the statement is, if it is one.
    public internal(set) var pragma: Pragma?

    /// The effect of a PRAGMA.
    public enum Pragma: Hashable, Sendable {
        /// It only returns information.
        case asks
        /// Its effect is part of the transaction, or ends with it.
        case isTransactional
        /// It does work on the file or the connection.
        case acts
        /// It sets something for all later statements of the connection.
        case sets
    }

    public init() {}

    /// Whether the statement only reads.
    public var isReading: Bool { writes.isEmpty && !changesSchema }
}

/// Collects what the authorizer reports while one statement is prepared.
final class AccessCollector {
    var access = TableAccess()
    var isOn = false
    /// The collector of row changes, which says which tables it ignores.
    weak var rows: ChangeCollector?
    /// Whether the statement drops something. SQLite then asks about a delete as well.
    private var drops = false
    /// The PRAGMA that was denied. SQLite carries out many PRAGMAs while it compiles them, so a
    /// check of the compiled statement would be too late.
    private(set) var denied: String?

    /// PRAGMAs that only return information, with or without a value.
    private static let describing: Set<String> = [
        "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo",
        "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo",
    ]
    /// PRAGMAs that do work when they are run, with or without a value.
    private static let acting: Set<String> = [
        "incremental_vacuum", "optimize", "shrink_memory", "wal_checkpoint",
    ]
    private static let transactional: Set<String> = [
        "application_id", "defer_foreign_keys", "user_version",
    ]

    private static func kind(ofPragma name: String, isGiven: Bool) -> TableAccess.Pragma {
        if acting.contains(name) { return .acts }
        if !isGiven || describing.contains(name) { return .asks }
        return transactional.contains(name) ? .isTransactional : .sets
    }

    /// Handles a call of the authorizer.
    /// - Parameters:
    ///   - table: The first argument of the action, mostly a table.
    ///   - second: The second argument, such as the column of a read or an update.
    ///   - trigger: The innermost trigger or view that causes the access.
    /// - Returns: The answer for SQLite.
    func note(
        action: Int32, table: UnsafePointer<CChar>?, second: UnsafePointer<CChar>?,
        trigger: UnsafePointer<CChar>?
    ) -> Int32 {
        guard isOn else { return SQLITE_OK }
        if action == SQLITE_PRAGMA, let table {
            let name = String(cString: table).lowercased()
            let kind = Self.kind(ofPragma: name, isGiven: second != nil)
            access.pragma = kind
            if kind == .sets { denied = name }
            return kind == .sets ? SQLITE_DENY : SQLITE_OK
        }
        return collect(action: action, table: table, second: second, trigger: trigger)
    }

    private func collect(
        action: Int32, table: UnsafePointer<CChar>?, second: UnsafePointer<CChar>?,
        trigger: UnsafePointer<CChar>?
    ) -> Int32 {
        switch action {
        case SQLITE_READ:
            if let table { access.reads.insert(String(cString: table)) }
        case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE:
            guard let table else { break }
            let name = String(cString: table)
            guard !name.hasPrefix("sqlite_") else { break }
            if let trigger {
                access.unclearWrites.insert(name)
                access.triggeredWrites[String(cString: trigger), default: []].insert(name)
            } else {
                access.writes.insert(name)
                if action == SQLITE_UPDATE, let second { noteUpdate(name, String(cString: second)) }
            }
            // This answer makes SQLite carry out a DELETE without a condition row by row, and so
            // report each row (https://sqlite.org/c3ref/set_authorizer.html). A DROP would end
            // without doing anything.
            if action == SQLITE_DELETE, !drops, rows?.ignores(name) != true {
                return SQLITE_IGNORE
            }
        case SQLITE_DROP_INDEX, SQLITE_DROP_TABLE, SQLITE_DROP_TRIGGER, SQLITE_DROP_VIEW,
            SQLITE_DROP_VTABLE:
            drops = true
            access.changesSchema = true
            noteChange(action, first: table, second: second)
        case SQLITE_CREATE_INDEX, SQLITE_CREATE_TABLE, SQLITE_CREATE_TRIGGER, SQLITE_CREATE_VIEW,
            SQLITE_CREATE_VTABLE, SQLITE_ALTER_TABLE:
            access.changesSchema = true
            noteChange(action, first: table, second: second)
        case SQLITE_CREATE_TEMP_TABLE, SQLITE_CREATE_TEMP_VIEW:
            if let table { access.temporaries.insert(String(cString: table)) }
        case SQLITE_ATTACH, SQLITE_DETACH:
            access.attaches = true
        case SQLITE_TRANSACTION, SQLITE_SAVEPOINT:
            access.controlsTransaction = true
        default:
            break
        }
        return SQLITE_OK
    }

    /// Notes an updated column. The hook reports an updated row under its new rowid only.
    private func noteUpdate(_ table: String, _ column: String) {
        access.updatedColumns[table, default: []].insert(column)
        if column == "ROWID" { access.unclearWrites.insert(table) }
    }

    /// Notes the objects that a change of the schema touches
    /// (https://sqlite.org/c3ref/c_alter_table.html). Views and virtual tables have no records.
    private func noteChange(
        _ action: Int32, first: UnsafePointer<CChar>?, second: UnsafePointer<CChar>?
    ) {
        switch action {
        case SQLITE_CREATE_TABLE, SQLITE_DROP_TABLE:
            if let first { access.changedTables.insert(String(cString: first)) }
        case SQLITE_CREATE_INDEX, SQLITE_DROP_INDEX, SQLITE_ALTER_TABLE:
            if let second { access.changedTables.insert(String(cString: second)) }
        case SQLITE_CREATE_TRIGGER, SQLITE_DROP_TRIGGER, SQLITE_CREATE_VIEW, SQLITE_DROP_VIEW:
            if let first { access.changedObjects.insert(String(cString: first)) }
            if let second { access.changedObjects.insert(String(cString: second)) }
        default:
            break
        }
    }

    /// Returns the notes about `sql` and clears them. The hook does not report rows that a REPLACE
    /// pushes out, so a statement with these letters anywhere makes its tables unclear. One look
    /// too many does no harm.
    func take(sql: String) -> TableAccess {
        defer {
            access = TableAccess()
            drops = false
            denied = nil
        }
        guard !access.writes.isEmpty else { return access }
        if sql.uppercased().utf8.contains("REPLACE".utf8) {
            access.unclearWrites.formUnion(access.writes)
        }
        return access
    }
}
