internal import MartletCore
internal import SQLiteKit
internal import SQLiteRecords

/// The triggers that note every write to a type's table, by any connection.
///
/// They use built-in functions only, so that the shell and other libraries can write. An insert
/// notes the key, an update and a delete the old row; what has really changed is found when the
/// note is taken (comparing columns in the trigger cost more than writing them). A replace
/// deletes rows without firing delete triggers where `recursive_triggers` is off (the default
/// elsewhere), so the image of every row an insert or an update may replace is noted before it
/// happens; an image of a row that then stays as it was means nothing.
enum CaptureTriggers {
    enum Operation {
        static let inserted: Int64 = 1
        static let updated: Int64 = 2
        static let deleted: Int64 = 3
        static let image: Int64 = 4
    }

    static let refusedKey =
        "martlet: a new record's integer key must be negative; take it from"
        + " (SELECT id FROM martlet_new_id)"
    static let refusedTextKey = "martlet: a record's key must be a non-empty text"
    static let refusedKeyChange =
        "martlet: the key of a record cannot be changed; delete the"
        + " record and insert a new one"

    private static func names(number: Int64) -> [String] {
        ["insert", "before", "update", "key", "unique", "delete"].map {
            "martlet_capture_\($0)_\(number)"
        }
    }

    private static func literal(_ text: String) -> String {
        "'" + text.replacing("'", with: "''") + "'"
    }

    /// Removes all capture triggers, whatever schema they were made for.
    static func dropAll(_ connection: Connection) throws(SQLiteError) {
        for name in try present(connection).keys {
            try connection.execute("DROP TRIGGER \(SQLName.quoted(name))")
        }
    }

    /// The capture triggers there are: their statements by name.
    static func present(_ connection: Connection) throws(SQLiteError) -> [String: String] {
        let rows = try connection.prepare(
            "SELECT name, sql FROM main.sqlite_schema"
                + " WHERE type = 'trigger' AND name GLOB 'martlet_capture_*'")
        var present: [String: String] = [:]
        _ = try rows.rows { (row) throws(SQLiteError) in present[row.text(0)] = row.text(1) }
        return present
    }

    /// Whether the file has triggers of the app's, or of its full-text indexes.
    static func areBesideOthers(_ connection: Connection) throws(SQLiteError) -> Bool {
        try connection.integer(
            "SELECT 1 FROM main.sqlite_schema"
                + " WHERE type = 'trigger' AND name NOT GLOB 'martlet_capture_*' LIMIT 1") != nil
    }

    /// Makes the capture triggers of all types what they should be.
    /// - Returns: Whether they were not.
    @discardableResult
    static func bring(
        _ connection: Connection, to types: [EntityType], numbers: [Int64]
    ) throws(SQLiteError) -> Bool {
        let wanted = zip(types, numbers).flatMap { statements(type: $0, number: $1) }
        // SQLite keeps a trigger's text as it was written.
        guard try Set(present(connection).values) != Set(wanted) else { return false }
        try dropAll(connection)
        for statement in wanted {
            try connection.execute(statement)
        }
        return true
    }

    /// The columns a note of a record holds, in order.
    static func noted(_ type: EntityType) -> [String] {
        type.attributes.filter { !$0.isGenerated }.map(\.name)
    }

    /// A number that stands for which column the notes of each type hold where: FNV-1a, 64 bits.
    static func layout(_ types: [EntityType], numbers: [Int64]) -> Int64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func add(_ text: String) {
            for byte in text.utf8 {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
            }
            hash = (hash ^ 0xff) &* 0x100_0000_01b3
        }
        for (type, number) in zip(types, numbers) {
            add("type \(number)")
            for name in noted(type) { add(name) }
        }
        return Int64(bitPattern: hash)
    }

    /// The CREATE statements for one type.
    static func statements(type: EntityType, number: Int64) -> [String] {
        let table = SQLName.quoted(type.name)
        let key = SQLName.quoted(type.key)
        let columns = noted(type).map { SQLName.quoted($0) }
        let on = "(SELECT capture FROM martlet_control)"
        let slots = columns.indices.map { ", v\($0)" }.joined()
        let into = "INSERT INTO martlet_capture(type, operation, id\(slots))"
        let oldRow = columns.map { ", OLD.\($0)" }.joined()
        let row = columns.map { ", \($0)" }.joined()
        let names = names(number: number)
        var statements = [
            """
            CREATE TRIGGER \(names[0]) AFTER INSERT ON \(table) WHEN \(on) BEGIN
                \(keyCheck(type, key: key, number: number))
                INSERT INTO martlet_capture(type, operation, id)
                    VALUES (\(number), \(Operation.inserted), NEW.\(key));
            END
            """,
            // The flag is read only where there is something to note: it costs more than the look-up.
            """
            CREATE TRIGGER \(names[1]) BEFORE INSERT ON \(table)
            WHEN CASE WHEN EXISTS (SELECT 1 FROM \(table) WHERE \(key) = NEW.\(key)) THEN \(on) END
            BEGIN
                \(into) SELECT \(number), \(Operation.image), \(key)\(row)
                    FROM \(table) WHERE \(key) = NEW.\(key);
            END
            """,
            """
            CREATE TRIGGER \(names[3]) BEFORE UPDATE OF \(key) ON \(table)
            WHEN \(on) AND OLD.\(key) IS NOT NEW.\(key) BEGIN
                SELECT RAISE(ABORT, \(literal(refusedKeyChange)));
            END
            """,
            """
            CREATE TRIGGER \(names[5]) AFTER DELETE ON \(table) WHEN \(on) BEGIN
                \(into) VALUES (\(number), \(Operation.deleted), OLD.\(key)\(oldRow));
            END
            """,
        ]
        if !columns.isEmpty {
            statements.append(
                """
                CREATE TRIGGER \(names[2]) AFTER UPDATE ON \(table) WHEN \(on) BEGIN
                    \(into) VALUES (\(number), \(Operation.updated), OLD.\(key)\(oldRow));
                END
                """)
        }
        return statements
            + unique(
                type, names: names, table: table, key: key, row: row, number: number, into: into)
    }

    /// Refuses a key the server would not take, with a sentence that says what to do.
    private static func keyCheck(_ type: EntityType, key: String, number: Int64) -> String {
        switch type.keyKind {
        case .integer:
            // The plus takes the key's affinity away, with which the id could not be looked up.
            """
            SELECT RAISE(ABORT, \(literal(refusedKey))) WHERE NEW.\(key) >= 0 AND NOT EXISTS (
                    SELECT 1 FROM martlet_records WHERE type = \(number) AND id = +NEW.\(key));
            """
        case .text:
            """
            SELECT RAISE(ABORT, \(literal(refusedTextKey)))
                    WHERE typeof(NEW.\(key)) <> 'text' OR NEW.\(key) = '';
            """
        }
    }

    /// Notes the rows that a REPLACE on a secondary UNIQUE constraint may delete. The insert half
    /// joins the trigger on the key only where there is such a constraint.
    private static func unique(
        _ type: EntityType, names: [String], table: String, key: String, row: String,
        number: Int64, into: String
    ) -> [String] {
        guard !type.uniques.isEmpty else { return [] }
        let collisions = type.uniques.map { columns in
            columns.map { column in
                let name = column == type.key ? key : SQLName.quoted(column)
                return "\(name) = NEW.\(name)"
            }.joined(separator: " AND ")
        }
        let watched = Set(type.uniques.joined()).sorted().map { SQLName.quoted($0) }
            .joined(separator: ", ")
        let any = collisions.map { "(\($0))" }.joined(separator: " OR ")
        let own = SQLName.quoted(type.key)
        let body = """
            \(into) SELECT \(number), \(Operation.image), \(key)\(row)
                    FROM \(table) WHERE (\(any)) AND \(own) IS NOT
            """
        return [
            """
            CREATE TRIGGER \(names[4]) BEFORE INSERT ON \(table)
            WHEN (SELECT capture FROM martlet_control) BEGIN
                \(body) NEW.\(key);
            END
            """,
            """
            CREATE TRIGGER \(names[4])_update BEFORE UPDATE OF \(watched) ON \(table)
            WHEN (SELECT capture FROM martlet_control) BEGIN
                \(body) OLD.\(key);
            END
            """,
        ]
    }
}
