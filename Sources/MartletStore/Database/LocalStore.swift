public import MartletCore
public import MartletProtocol
public import SQLiteKit
public import SQLiteRecords

/// A device's SQLite file: the app's tables, their capture, and Martlet's own tables beside them.
///
/// Confined to whoever holds it; every call blocks.
public final class LocalStore {
    public let connection: Connection
    public let schema: Schema
    /// One table for each of `schema.types`, in that order.
    public let tables: [RecordTable]
    /// The number each type has in Martlet's tables, for ever, in the order of `schema.types`.
    public let numbers: [Int64]
    private let indexes: [Int64: Int]

    /// Opens or creates a file, brings its tables to `script`, and sets up capture.
    ///
    /// - Parameters:
    ///   - script: The app's DDL; nil to take the tables as they are in the file.
    ///   - vfs: A registered VFS; nil for the platform's.
    /// - Throws: `StoreError` for a schema or file that cannot be used, `SQLiteError` otherwise.
    public init(
        path: String, script: String?, vfs: String? = nil,
        busyTimeoutMilliseconds: Int32 = 10_000
    ) throws {
        connection = try Connection(
            path: path, vfs: vfs, busyTimeoutMilliseconds: busyTimeoutMilliseconds,
            tracksTables: true)
        // FULL: a frozen set must still be frozen after a power cut, or a retry could differ.
        try connection.execute(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            PRAGMA recursive_triggers = ON; PRAGMA foreign_keys = ON;
            """)
        let schema = try Self.prepare(connection, script: script)
        self.schema = schema
        let connection = connection
        tables = schema.types.map { RecordTable(type: $0, connection: connection) }
        numbers = try connection.transaction {
            try Self.setUp(connection, schema: schema)
        }
        indexes = Dictionary(uniqueKeysWithValues: numbers.enumerated().map { ($1, $0) })
    }

    /// Opens a second connection to the same file, with foreign keys unchecked, for the one who
    /// applies remote change.
    public init(applyingBeside other: LocalStore, path: String, vfs: String?) throws {
        connection = try Connection(
            path: path, mode: .readWrite, vfs: vfs, busyTimeoutMilliseconds: 10_000,
            tracksTables: true)
        try connection.execute(
            """
            PRAGMA synchronous = FULL; PRAGMA recursive_triggers = ON; PRAGMA foreign_keys = OFF;
            """)
        schema = other.schema
        numbers = other.numbers
        indexes = other.indexes
        let connection = connection
        tables = schema.types.map { RecordTable(type: $0, connection: connection) }
    }

    /// Opens a connection that can only read a file another connection has set up.
    public init(readingFrom path: String, vfs: String? = nil) throws {
        let connection = try Connection(
            path: path, mode: .readOnly, vfs: vfs, busyTimeoutMilliseconds: 10_000,
            tracksTables: true)
        let schema = try Self.prepare(connection, script: nil)
        self.connection = connection
        self.schema = schema
        numbers = try schema.types.map { type in
            let find = try connection.statement("SELECT number FROM martlet_types WHERE name = ?")
            find.bind(1, text: type.name)
            defer { find.reset() }
            guard try find.step() else {
                throw StoreError(.file, "The file was not set up by Martlet; open it for writing.")
            }
            return find.integer(0)
        }
        indexes = Dictionary(uniqueKeysWithValues: numbers.enumerated().map { ($1, $0) })
        tables = schema.types.map { RecordTable(type: $0, connection: connection) }
    }

    private static func prepare(_ connection: Connection, script: String?) throws -> Schema {
        do {
            // A migration rewrites tables; what foreign programs wrote must not meet old triggers.
            if let script { return try SchemaMigration.apply(script: script, to: connection) }
            return try SchemaReader.read(connection)
        } catch let error as SchemaError {
            throw StoreError(.schema, error.message)
        }
    }

    /// Creates Martlet's tables and the triggers of every type; returns the types' numbers.
    private static func setUp(_ connection: Connection, schema: Schema) throws -> [Int64] {
        let isNew =
            try connection.integer(
                "SELECT 1 FROM sqlite_master WHERE name = 'martlet_control'") == nil
        let widest = schema.types.map { $0.attributes.count { !$0.isGenerated } }.max() ?? 0
        if let width = try DeviceTables.captureWidth(connection) {
            for column in width..<max(width, widest) {
                try connection.execute("ALTER TABLE martlet_capture ADD COLUMN v\(column)")
            }
        } else {
            try connection.execute(DeviceTables.captureTable(width: widest))
        }
        if isNew {
            try refuseRecords(connection, schema: schema)
        }
        try connection.execute(DeviceTables.script)
        if isNew {
            try connection.execute(
                """
                INSERT INTO martlet_state VALUES
                    ('format', \(DeviceTables.format)), ('nextTemporaryID', -1),
                    ('nextSequence', 1), ('revision', 0);
                """)
        }
        let format = try connection.integer("SELECT value FROM martlet_state WHERE name = 'format'")
        guard format == DeviceTables.format else {
            throw StoreError(
                .file,
                "The file was made by another version of Martlet (form \(format ?? 0), this"
                    + " one reads \(DeviceTables.format)); open it with that version.")
        }
        var numbers: [Int64] = []
        try CaptureTriggers.dropAll(connection)
        for type in schema.types {
            let number = try number(of: type.name, in: connection)
            try connection.execute(CaptureTriggers.script(type: type, number: number))
            numbers.append(number)
        }
        connection.clearStatementCache()
        return numbers
    }

    /// A file whose tables hold records Martlet has never seen would differ from the server for
    /// ever without anyone noticing.
    private static func refuseRecords(_ connection: Connection, schema: Schema) throws {
        for type in schema.types {
            let name = SQLName.quoted(type.name)
            if try connection.integer("SELECT 1 FROM \(name) LIMIT 1") != nil {
                throw StoreError(
                    .file,
                    "The table \(type.name) already holds records. Make a new file and load"
                        + " them into it with “martlet import”.")
            }
        }
    }

    private static func number(of name: String, in connection: Connection) throws -> Int64 {
        let insert = try connection.statement(
            "INSERT OR IGNORE INTO martlet_types(name) VALUES (?)")
        insert.bind(1, text: name)
        try insert.run()
        let find = try connection.statement("SELECT number FROM martlet_types WHERE name = ?")
        find.bind(1, text: name)
        defer { find.reset() }
        guard try find.step() else {
            throw StoreError(.inconsistent, "The type \(name) could not be numbered.")
        }
        return find.integer(0)
    }

    /// The position of the type with a number; nil for a type this schema no longer has.
    public func index(ofNumber number: Int64) -> Int? {
        indexes[number]
    }

    /// The position of a type.
    /// - Throws: `StoreError` `.unknown` when the schema has no such type.
    public func index(of name: String) throws -> Int {
        guard let index = schema.index(of: name) else {
            throw StoreError(.unknown, "There is no type \(name); the schema names the types.")
        }
        return index
    }
}

// MARK: - State

extension LocalStore {
    /// A number kept across restarts under a name.
    public func integerState(_ name: String) throws -> Int64? {
        let find = try connection.statement("SELECT value FROM martlet_state WHERE name = ?")
        find.bind(1, text: name)
        defer { find.reset() }
        return try find.step() && !find.isNull(0) ? find.integer(0) : nil
    }

    /// A text kept across restarts under a name.
    public func textState(_ name: String) throws -> String? {
        let find = try connection.statement("SELECT value FROM martlet_state WHERE name = ?")
        find.bind(1, text: name)
        defer { find.reset() }
        return try find.step() && !find.isNull(0) ? find.text(0) : nil
    }

    /// Keeps a value under a name, in the current transaction.
    public func setState(_ name: String, _ value: Value) throws {
        let put = try connection.statement(
            "INSERT INTO martlet_state VALUES (?1, ?2)"
                + " ON CONFLICT (name) DO UPDATE SET value = ?2")
        put.bind(1, text: name)
        put.bind(2, value, kind: .any)
        try put.run()
    }

    /// Turns capture off or on; off only inside a transaction that turns it on again.
    public func setCapture(_ isOn: Bool) throws {
        try connection.run("UPDATE martlet_control SET capture = \(isOn ? 1 : 0)")
    }
}
