internal import Foundation
internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// One operation on one record in a large write.
struct LargeWriteOperation: Sendable {
    enum Kind: Int64, Sendable {
        case insert
        case update
        case delete
    }

    let kind: Kind
    let table: String
    let declaration: String?
    /// The number by which other records refer to it; nil if it carries its key.
    let made: Int64?
    let values: RecordValues
}

/// Gathered records for one table.
struct LargeWriteForm: Sendable {
    let table: String
    let declaration: String?
    /// The key's column; nil for a key of several columns.
    let key: String?
    let records: [RecordValues]
}

/// The auxiliary file of a large write. It stores the operations in order, in a table for each kind
/// of record.
///
/// Confined to its holder; every call blocks.
final class LargeWriteFile {
    private struct Shape: Hashable {
        let kind: Int64
        let table: String
        let names: [String]
    }

    private let session: Session
    /// A random identity that tells this large write from earlier ones of the same name.
    let identity: String
    private(set) var isGathered: Bool
    private(set) var total: Int
    private var lastMade: Int64
    private var shapes: [Shape: Int64] = [:]

    /// Numbers for keys that the database has yet to make count down from here, below all temporary
    /// ids.
    private static let firstMade = -(Int64(1) << 62)
    private static let mostMade = Int64(1) << 40
    /// The bytes of values after which a save ends.
    private static let saveBytes = 4 << 20

    /// Returns whether a value stands for a key that the database has yet to make.
    static func isMade(_ value: SQLValue) -> Bool {
        guard case .integer(let number) = value else { return false }
        return number < firstMade && number >= firstMade - mostMade
    }

    init(path: String) throws {
        let connection = try Connection(path: path, busyTimeoutMilliseconds: 0)
        session = Session(connection: connection)
        // Only one holder may use the file at a time.
        try connection.execute(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;"
        )
        try connection.transaction {
            let isThere = try connection.integer("SELECT 1 FROM sqlite_master WHERE name = 'state'")
            guard try isThere == nil || connection.integer("SELECT gathered FROM state") != 1 else {
                return
            }
            // The file is new, or its gathering was interrupted; gathering begins from nothing.
            try Self.clear(connection)
        }
        identity = try connection.text("SELECT identity FROM state") ?? ""
        isGathered = try connection.integer("SELECT gathered FROM state") == 1
        total = Int(try connection.integer("SELECT max(n) FROM operations") ?? 0)
        lastMade = Self.firstMade
    }

    private static func clear(_ connection: Connection) throws {
        let names = try connection.statement("SELECT name FROM sqlite_master WHERE type = 'table'")
            .rows { (row) throws(SQLiteError) in row.text(0) }
        connection.clearStatementCache()
        for name in names { try connection.execute("DROP TABLE \(SQLName.quoted(name))") }
        try connection.execute(
            """
            CREATE TABLE state(identity TEXT NOT NULL, gathered INTEGER NOT NULL);
            INSERT INTO state VALUES (lower(hex(randomblob(16))), 0);
            CREATE TABLE shapes(
                shape INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name TEXT NOT NULL,
                declaration TEXT);
            CREATE TABLE operations(n INTEGER PRIMARY KEY, shape INTEGER NOT NULL, made INTEGER);
            """)
    }

    /// Returns whether a file holds a large write whose gathering has ended; false if it cannot be
    /// read.
    static func isGathered(path: String) -> Bool {
        guard
            let connection = try? Connection(
                path: path, mode: .readOnly, busyTimeoutMilliseconds: 0)
        else { return false }
        return (try? connection.integer("SELECT gathered FROM state")) == 1
    }

    /// Adds operations.
    /// - Returns: The records' keys.
    func add(_ kind: LargeWriteOperation.Kind, _ form: LargeWriteForm) throws -> [RecordID] {
        guard !isGathered else {
            throw StoreError(
                .misuse, "Gathering has ended, and the large write can only be run or discarded.")
        }
        let (before, made, known) = (total, lastMade, shapes)
        do {
            return try session.connection.transaction {
                try form.records.map { try add($0, kind, form) }
            }
        } catch {
            (total, lastMade, shapes) = (before, made, known)
            throw error
        }
    }

    private func add(
        _ values: RecordValues, _ kind: LargeWriteOperation.Kind, _ form: LargeWriteForm
    ) throws -> RecordID {
        let given = form.key.flatMap { values[$0] }.flatMap { RecordID($0) }
        var made: SQLValue = .null
        if kind == .insert, given == nil {
            lastMade -= 1
            made = .integer(lastMade)
        } else if kind == .update, form.key != nil, given == nil {
            throw StoreError(
                .value, "A record of “\(form.table)” carries no key, so it cannot be changed by it."
            )
        }
        let shape = try shape(
            Shape(kind: kind.rawValue, table: form.table, names: values.names), form)
        total += 1
        let number = SQLValue.integer(Int64(total))
        try session.forEachRow(
            "INSERT INTO operations VALUES (?, ?, ?)", [number, .integer(shape), made]
        ) { _ in }
        let slots = TableStatements.slots(values.count + 1)
        try session.forEachRow(
            "INSERT INTO shape_\(shape) VALUES (\(slots))", [number] + values.values
        ) { _ in }
        return given ?? .integer(lastMade)
    }

    /// Returns the number of a kind of record, and makes its table when the kind is new.
    private func shape(_ shape: Shape, _ form: LargeWriteForm) throws -> Int64 {
        if let known = shapes[shape] { return known }
        let number = Int64(shapes.count + 1)
        shapes[shape] = number
        try session.forEachRow(
            "INSERT INTO shapes VALUES (?, ?, ?, ?)",
            [
                .integer(number), .integer(shape.kind), .text(shape.table),
                form.declaration.map { .text($0) } ?? .null,
            ]
        ) { _ in }
        // Columns without a type store every value as it is.
        let columns = shape.names.map { ", " + SQLName.quoted($0) }.joined()
        try session.connection.execute(
            "CREATE TABLE shape_\(number)(martlet_n INTEGER PRIMARY KEY\(columns))")
        return number
    }

    func endGathering() throws {
        try session.connection.transaction {
            try session.connection.run("UPDATE state SET gathered = 1")
        }
        isGathered = true
    }

    /// Returns the operations after the first `done`.
    /// - Parameter limit: The most operations; there are fewer if their values have many bytes.
    func operations(after done: Int, limit: Int) throws -> [LargeWriteOperation] {
        var found: [(number: Int64, shape: Int64, made: Int64?)] = []
        try session.forEachRow(
            "SELECT n, shape, made FROM operations WHERE n > ? ORDER BY n LIMIT ?",
            [.integer(Int64(done)), .integer(Int64(max(1, limit)))]
        ) { row in
            found.append((try row.get(at: 0), try row.get(at: 1), row.integer(at: 2)))
        }
        var operations: [LargeWriteOperation] = []
        var bytes = 0
        for (number, shape, made) in found where bytes < Self.saveBytes {
            let (kind, table, declaration) = try description(of: shape)
            var values = RecordValues()
            try session.forEachRow(
                "SELECT * FROM shape_\(shape) WHERE martlet_n = ?", [.integer(number)]
            ) { values = try $0.values }
            values["martlet_n"] = nil
            bytes += values.values.reduce(0) { $0 + $1.byteCount }
            operations.append(
                LargeWriteOperation(
                    kind: kind, table: table, declaration: declaration, made: made,
                    values: values))
        }
        return operations
    }

    private func description(
        of shape: Int64
    ) throws -> (LargeWriteOperation.Kind, table: String, declaration: String?) {
        var found: (LargeWriteOperation.Kind, String, String?)?
        try session.forEachRow(
            "SELECT kind, name, declaration FROM shapes WHERE shape = ?", [.integer(shape)]
        ) { row in
            guard let kind = LargeWriteOperation.Kind(rawValue: try row.get(at: 0)) else { return }
            found = (kind, try row.get(at: 1), try row.text(at: 2))
        }
        guard let found else {
            throw StoreError(
                .file,
                "The auxiliary file of the large write is damaged; discard it and gather again.")
        }
        return found
    }
}

extension SQLValue {
    /// The approximate bytes of the value.
    fileprivate var byteCount: Int {
        switch self {
        case .text(let text): 16 + text.utf8.count
        case .blob(let bytes): 16 + bytes.count
        case .null, .integer, .real: 16
        }
    }
}
