package import MartletModel
internal import MartletStore
package import SQLiteKit
package import SQLiteRecords

/// A device's SQLite file: the app's tables, their capture, and Martlet's own tables.
///
/// Only its holder may use it, from one thread at a time; every call blocks.
package final class LocalStore {
    package let connection: Connection
    package let schema: Schema
    /// One table for each of `schema.types`, in that order.
    package let tables: [RecordTable]
    /// The number that each type has in Martlet's tables, for ever, in the order of `schema.types`.
    package let numbers: [Int64]
    private let indexes: [Int64: Int]
    /// The layout of notes, by the number under which they were made.
    var noteForms: [Int64: NoteLayout] {
        didSet { notedNumbers = Self.list(noteForms) }
    }
    /// These numbers as a list in SQL.
    private(set) var notedNumbers: String

    /// The defaults of columns that the server need not have. Some may have been announced since.
    let unannounced: [Int: [String: Value]]
    /// The hash of the columns that the notes of each type hold.
    var layout: Int64
    /// Returns milliseconds since 1970, for rules that ask for the day; nil for the day of the last
    /// exchange.
    package var now: () -> Int64? = { nil }
    /// The rules that the file had when they were last read.
    var rules: KnownRules?
    /// Whether this store writes to the app's tables only while capture is off.
    private let isApplying: Bool
    /// The version of the schema for which the tables and capture's triggers were found to be in
    /// order.
    var orderedSchema: Int64?
    /// The version of the schema for which triggers were prepared last, and the number of copies
    /// made then.
    private var triggersPrepared: (version: Int64?, copies: Int)?

    /// Creates a store on a connection whose file is set up for the schema.
    /// - Parameter keepsClauses: Whether conflict clauses in declarations of tables count when
    ///   records are written. They are meant for the app's own writes only.
    init(
        connection: Connection, schema: Schema, numbers: [Int64], isApplying: Bool = false,
        keepsClauses: Bool = false
    ) {
        self.connection = connection
        self.isApplying = isApplying
        self.schema = schema
        self.numbers = numbers
        indexes = Dictionary(uniqueKeysWithValues: numbers.enumerated().map { ($1, $0) })
        noteForms = NoteLayout.ofNow(schema, numbers)
        notedNumbers = Self.list(noteForms)
        tables = schema.types.map {
            RecordTable(type: $0, connection: connection, keepsClauses: keepsClauses)
        }
        layout = CaptureTriggers.layout(schema.types, numbers: numbers)
        orderedSchema = try? connection.integer("PRAGMA schema_version")
        // A file that is not set up yet has none.
        unannounced = (try? Self.unannounced(schema, numbers, connection)) ?? [:]
        for (type, columns) in unannounced { tables[type].ownColumns = Set(columns.keys) }
    }

    private static func list(_ forms: [Int64: NoteLayout]) -> String {
        forms.keys.sorted().map(String.init).joined(separator: ", ")
    }

    /// Creates an empty store in memory, to replace one whose file is to be released.
    /// - Throws: `SQLiteError` if there is no memory for it.
    package convenience init(nothing: Void) throws {
        self.init(
            connection: try Connection(path: ":memory:"), schema: Schema(types: []), numbers: [])
    }

    /// The kibibytes of pages that a connection for remote change may hold. SQLite's 2 MiB are too
    /// few for a transaction of many rows whose keys are in no order: each page would be written
    /// and read again and again. SQLite allocates the memory when it needs it.
    private static let applyingCacheKibibytes = 16_384

    /// The milliseconds for which the connection for remote change waits for another.
    static let busyTimeout: Int32 = 10_000

    /// Opens a second connection to the same file, with foreign keys unchecked, for remote change.
    package convenience init(applyingBeside other: LocalStore, path: String, vfs: String?) throws {
        let connection = try Connection(
            path: path, mode: .readWrite, vfs: vfs, busyTimeoutMilliseconds: Self.busyTimeout,
            tracksTables: true)
        try connection.execute(
            """
            PRAGMA synchronous = FULL; PRAGMA recursive_triggers = ON; PRAGMA foreign_keys = OFF;
            PRAGMA secure_delete = ON; PRAGMA cache_size = -\(Self.applyingCacheKibibytes);
            """)
        self.init(
            connection: connection, schema: other.schema, numbers: other.numbers, isApplying: true)
    }

    /// Opens a connection that can only read, to a file that another connection has set up.
    /// - Throws: `StoreError` `.file` if the file was not set up by Martlet; `SQLiteError`.
    package convenience init(readingFrom path: String, vfs: String? = nil) throws {
        let connection = try Connection(
            path: path, mode: .readOnly, vfs: vfs, busyTimeoutMilliseconds: 10_000,
            tracksTables: true)
        let file = DeviceFile(connection: connection)
        let schema = try file.schema()
        let numbers = try schema.types.map { type in
            guard let number = try file.number(of: type.name) else {
                throw StoreError(.file, "The file was not set up by Martlet; open it for writing.")
            }
            return number
        }
        self.init(connection: connection, schema: schema, numbers: numbers)
    }

    /// Returns whether a file has any table of the app.
    package static func hasTables(path: String) throws -> Bool {
        let connection = try Connection(
            path: path, mode: .readOnly, busyTimeoutMilliseconds: 10_000)
        return try connection.integer(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table'"
                + " AND name NOT GLOB 'martlet_*' AND name NOT GLOB 'sqlite_*' LIMIT 1") != nil
    }

    /// Applies the settings of the app's connection. Foreign keys are enforced only once the tables
    /// are up to date.
    static func configure(_ connection: Connection) throws(SQLiteError) {
        // A file that has pages may have been made without this setting; only a new file can get
        // it.
        if try connection.integer("PRAGMA page_count") == 0 {
            try connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        }
        // FULL: a frozen set must still be frozen after a power cut, or a retry could differ.
        try connection.execute(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;
            PRAGMA recursive_triggers = ON; PRAGMA foreign_keys = OFF;
            """)
    }

    /// Returns the position of the type with a number; nil for a type that this schema no longer
    /// has.
    package func index(ofNumber number: Int64) -> Int? {
        indexes[number]
    }

    /// Returns the position of a type.
    /// - Throws: `StoreError` `.unknown` if the schema has no such type.
    package func index(of name: String) throws -> Int {
        guard let index = schema.index(of: name) else {
            throw StoreError(.unknown, "There is no type \(name); the schema names the types.")
        }
        return index
    }
}

// MARK: - State

extension LocalStore {
    /// Returns the number that is stored under a name; nil if there is none.
    package func integerState(_ name: String) throws -> Int64? {
        let find = try connection.statement("SELECT value FROM martlet_state WHERE name = ?")
        find.bind(1, text: name)
        defer { find.reset() }
        return try find.step() && !find.isNull(0) ? find.integer(0) : nil
    }

    /// Returns a number that every file has from its creation: `revision`, `nextSequence`,
    /// `nextTemporaryID`. To count from the beginning again would assign numbers twice.
    /// - Throws: `StoreError` `.inconsistent` if the number is gone.
    package func counter(_ name: String) throws -> Int64 {
        guard let number = try integerState(name) else {
            throw StoreError(
                .inconsistent,
                "The file has lost its \(name), which Martlet keeps in martlet_state. Restore the file"
                    + " from a backup, or begin with a new one.")
        }
        return number
    }

    /// Returns the text that is stored under a name; nil if there is none.
    package func textState(_ name: String) throws -> String? {
        let find = try connection.statement("SELECT value FROM martlet_state WHERE name = ?")
        find.bind(1, text: name)
        defer { find.reset() }
        return try find.step() && !find.isNull(0) ? find.text(0) : nil
    }

    /// Stores a value under a name, in the current transaction.
    package func setState(_ name: String, _ value: Value) throws {
        let put = try connection.statement(
            "INSERT INTO martlet_state VALUES (?1, ?2)"
                + " ON CONFLICT (name) DO UPDATE SET value = ?2")
        put.bind(1, text: name)
        put.bind(2, value, kind: .any)
        try put.run()
    }

    /// Recreates triggers that are gone, and turns capture on if it is off. Runs in the caller's
    /// transaction.
    /// - Returns: Whether there was anything to do.
    /// - Throws: `StoreError` `.newer` if the tables are not those that this store knows.
    package func restoreCapture() throws -> Bool {
        let isOff = try connection.integer("SELECT capture FROM martlet_control") != 1
        if isOff {
            try setCapture(true)
            try passKeys()
        }
        return try checkOrder() || isOff
    }

    /// Moves the next temporary id below those of rows that were written past the triggers. Runs in
    /// the caller's transaction.
    package func passKeys() throws {
        try DeviceFile(connection: connection).passKeys(of: schema)
    }

    /// Turns capture off or on. It may be off only inside a transaction that turns it on again.
    package func setCapture(_ isOn: Bool) throws {
        if isApplying, !isOn { try prepareTriggers() }
        try connection.run("UPDATE martlet_control SET capture = \(isOn ? 1 : 0)")
    }

    /// Turns the file's triggers off on the connection for remote change, and copies those of the
    /// app's that are needed there. The capture triggers would find capture off at every row, which
    /// costs half as much as the insert.
    private func prepareTriggers() throws {
        let version = try connection.integer("PRAGMA schema_version")
        let copies = RemoteTriggers(connection: connection)
        if let prepared = triggersPrepared, prepared.version == version,
            try prepared.copies == copies.count
        {
            return
        }
        try connection.setTriggers(enabled: false)
        try copies.bring()
        triggersPrepared = (version, try copies.count)
    }
}
