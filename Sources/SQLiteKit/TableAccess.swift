internal import CSQLite

/// Which tables a statement reads and writes, as SQLite's authorizer told when it was prepared.
public struct TableAccess: Hashable, Sendable {
    /// Tables and views the statement reads, those read by its triggers included.
    public internal(set) var reads: Set<String> = []
    /// Tables the statement itself writes.
    public internal(set) var writes: Set<String> = []
    /// Tables of which rows may change without the update hook telling which: those written by
    /// triggers, by a REPLACE, or emptied by a DELETE without a condition
    /// (https://sqlite.org/c3ref/update_hook.html).
    public internal(set) var unclearWrites: Set<String> = []
    /// Whether the statement changes the schema.
    public internal(set) var changesSchema = false
    /// Whether the statement begins or ends a transaction or a savepoint.
    public internal(set) var controlsTransaction = false

    public init() {}

    /// Whether the statement only reads.
    public var isReading: Bool { writes.isEmpty && !changesSchema }
}

/// Collects what the authorizer reports while one statement is prepared.
final class AccessCollector {
    var access = TableAccess()
    var isOn = false

    func note(action: Int32, table: UnsafePointer<CChar>?, trigger: UnsafePointer<CChar>?) {
        guard isOn else { return }
        switch action {
        case SQLITE_READ:
            if let table { access.reads.insert(String(cString: table)) }
        case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE:
            guard let table else { return }
            let name = String(cString: table)
            guard !name.hasPrefix("sqlite_") else { return }
            if trigger == nil {
                access.writes.insert(name)
            } else {
                access.unclearWrites.insert(name)
            }
        case SQLITE_CREATE_INDEX, SQLITE_CREATE_TABLE, SQLITE_CREATE_TRIGGER, SQLITE_CREATE_VIEW,
            SQLITE_CREATE_VTABLE, SQLITE_DROP_INDEX, SQLITE_DROP_TABLE, SQLITE_DROP_TRIGGER,
            SQLITE_DROP_VIEW, SQLITE_DROP_VTABLE, SQLITE_ALTER_TABLE:
            access.changesSchema = true
        case SQLITE_TRANSACTION, SQLITE_SAVEPOINT:
            access.controlsTransaction = true
        default:
            break
        }
    }

    /// Takes what was noted of `sql`; the kinds of writes the hook is silent on are read off its
    /// words. A word in a literal errs towards “unclear”, which only costs a look too many.
    func take(sql: String) -> TableAccess {
        defer { access = TableAccess() }
        guard !access.writes.isEmpty else { return access }
        let words = sql.uppercased().split { !($0.isLetter || $0 == "_") }
        let isBareDelete = words.first == "DELETE" && !words.contains("WHERE")
        if isBareDelete || words.contains("REPLACE") {
            access.unclearWrites.formUnion(access.writes)
        }
        return access
    }
}
