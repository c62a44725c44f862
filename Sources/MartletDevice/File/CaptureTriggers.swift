internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The triggers that note every write to a type's table, by any connection.
///
/// They use built-in functions only, so that the shell and other libraries can write. An insert
/// notes the key; an update and a delete note the old row. The actual changes are found when the
/// notes are taken, because comparing columns in the trigger cost more than writing them. If
/// `recursive_triggers` is off (the default of other programs), REPLACE deletes rows without firing
/// delete triggers. Therefore the image of every row that an insert or an update may replace is
/// noted in advance. If the row then stays as it was, its image has no effect.
///
/// Each write is noted before it happens. In whatever order SQLite runs another program's triggers,
/// their writes are thus noted after the write that fired them.
enum CaptureTriggers {
    enum Operation {
        static let inserted: Int64 = 1
        static let updated: Int64 = 2
        static let deleted: Int64 = 3
        static let image: Int64 = 4
    }

    static let refusedKey =
        "martlet: a new record's integer key must be negative and the next one; take it from"
        + " (SELECT id FROM martlet_new_id)"
    static let refusedDeletedKey =
        "martlet: the record with this key was deleted, and cannot come back under it; insert a new"
        + " one, with a key from (SELECT id FROM martlet_new_id)"
    static let refusedTextKey =
        "martlet: a record's key must be a non-empty text in UTF-8 without NUL, of at most"
        + " \(Limits.textBytes >> 20) MiB"
    /// The most by which a key may be below the next temporary id. Other programs insert fewer
    /// records between two looks, and the range of keys is far larger.
    private static let mostTemporaryIDs: Int64 = 1 << 32
    /// The longest text key, in characters, that is searched for invalid UTF-8.
    private static let mostReadCharacters = 4_096
    static let refusedKeyChange =
        "martlet: the key of a record cannot be changed; delete the"
        + " record and insert a new one"

    /// The beginning of the names of the triggers that note deletes. The type's number follows.
    static let deletes = "martlet_capture_delete_"

    private static func name(_ event: String, _ number: Int64) -> String {
        "martlet_capture_\(event)_\(number)"
    }

    private static func literal(_ text: String) -> String { SQLName.literal(text) }

    /// Removes all capture triggers, of whatever schema. Those of tables that are away stay.
    static func dropAll(_ connection: Connection) throws(SQLiteError) {
        for name in try present(connection).keys {
            try connection.execute("DROP TRIGGER \(SQLName.quoted(name))")
        }
    }

    /// Returns the statements of the present capture triggers, by name, without those of tables
    /// that are away.
    static func present(_ connection: Connection) throws(SQLiteError) -> [String: String] {
        let away = Set(try MovedTables(connection).away.map(\.table))
        let rows = try connection.prepare(
            "SELECT name, sql, tbl_name FROM main.sqlite_schema"
                + " WHERE type = 'trigger' AND name GLOB 'martlet_capture_*'")
        var present: [String: String] = [:]
        _ = try rows.rows { (row) throws(SQLiteError) -> Void in
            if !away.contains(row.text(2)) { present[row.text(0)] = row.text(1) }
        }
        return present
    }

    /// Returns whether the capture triggers of all types are up to date.
    static func areBrought(
        _ connection: Connection, to types: [EntityType], numbers: [Int64]
    ) throws(SQLiteError) -> Bool {
        try Set(present(connection).values) == Set(wanted(connection, types, numbers))
    }

    private static func wanted(
        _ connection: Connection, _ types: [EntityType], _ numbers: [Int64]
    ) throws(SQLiteError) -> [String] {
        var wanted: [String] = []
        let actions = try ReferenceActions(connection)
        for (type, number) in zip(types, numbers) {
            wanted += statements(type, number, try RowConflicts(type, actions, connection))
        }
        return wanted
    }

    /// Brings the capture triggers of all types up to date.
    /// - Returns: Whether any were not.
    @discardableResult
    static func bring(
        _ connection: Connection, to types: [EntityType], numbers: [Int64]
    ) throws(SQLiteError) -> Bool {
        let wanted = try wanted(connection, types, numbers)
        // SQLite keeps a trigger's text as it was written.
        guard try Set(present(connection).values) != Set(wanted) else { return false }
        try dropAll(connection)
        for statement in wanted {
            try connection.execute(statement)
        }
        return true
    }

    /// Recreates capture triggers that are missing, or that do not fit the table any more because
    /// another program recreated the table or gave it other indexes. Triggers of types that only
    /// another process knows stay.
    /// - Returns: Whether any had to be recreated.
    static func complete(
        _ connection: Connection, _ types: [(EntityType, Int64)]
    ) throws(SQLiteError) -> Bool {
        let find = try connection.statement(
            "SELECT tbl_name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?")
        let actions = try ReferenceActions(connection)
        var isComplete = true
        for (type, number) in types {
            let wanted = statements(type, number, try RowConflicts(type, actions, connection))
            let table = SQLName.folded(type.name)
            var areThere = true
            var present: [String] = []
            for statement in wanted {
                guard let name = TriggerDeclaration.name(statement) else { continue }
                find.bind(1, text: name)
                defer { find.reset() }
                guard try find.step() else {
                    areThere = false
                    continue
                }
                present.append(name)
                if SQLName.folded(find.text(0)) != table || find.text(1) != statement {
                    areThere = false
                }
            }
            if areThere { continue }
            isComplete = false
            for name in present {
                try connection.execute("DROP TRIGGER \(SQLName.quoted(name))")
            }
            for statement in wanted { try connection.execute(statement) }
        }
        return !isComplete
    }

    /// Returns the columns that the triggers of a number note, in order, under their present names:
    /// if a column is renamed, SQLite renames it in the triggers, too. Nil if there are no such
    /// triggers.
    static func noted(by triggers: [String: String], _ number: Int64) -> [String]? {
        guard let statement = triggers[name("delete", number)] else { return nil }
        // The search goes by bytes, because a letter after a quote may be one character with it.
        let old = Array("OLD.\"".utf8)
        let quote = UInt8(ascii: "\"")
        var names: [String] = []
        var rest = Array(statement.utf8)[...]
        while let start = rest.firstRange(of: old) {
            var name: [UInt8] = []
            rest = rest[start.upperBound...]
            while let end = rest.firstIndex(of: quote) {
                name += rest[..<end]
                rest = rest[end...].dropFirst()
                guard rest.first == quote else { break }
                name.append(quote)
                rest = rest.dropFirst()
            }
            names.append(String(decoding: name, as: UTF8.self))
        }
        // The first is the key.
        return Array(names.dropFirst())
    }

    /// Returns the columns that a note of a record holds, in order.
    static func noted(_ type: EntityType) -> [String] {
        type.attributes.filter { !$0.isGenerated }.map(\.name)
    }

    /// Returns a hash of the columns that the notes of each type hold, in order: FNV-1a, 64 bits.
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

    private static let on = "(SELECT capture FROM martlet_control)"

    /// Returns the CREATE statements for one type.
    private static func statements(
        _ type: EntityType, _ number: Int64, _ conflicts: RowConflicts
    ) -> [String] {
        let table = SQLName.quoted(type.name)
        let key = SQLName.quoted(type.key)
        let columns = noted(type).map { SQLName.quoted($0) }
        let slots = columns.indices.map { ", v\($0)" }.joined()
        let into = "INSERT INTO martlet_capture(type, operation, id\(slots))"
        let oldRow = columns.map { ", OLD.\($0)" }.joined()
        let row = columns.map { ", \($0)" }.joined()
        let image =
            "\(into) SELECT \(number), \(Operation.image), \(key)\(row) FROM \(table) AS martlet_row"
        let isSame = conflicts.keyConditions.joined(separator: " OR ")
        // If a table has only a key, an update cannot change anything.
        let update = "\(into) VALUES (\(number), \(Operation.updated), OLD.\(key)\(oldRow));"
        return [
            """
            CREATE TRIGGER \(name("insert", number)) BEFORE INSERT ON \(table) WHEN \(on) BEGIN
                \(type.keyKind == .text ? textKeyCheck(key) : integerKeyCheck(key, number: number))
                \(image) WHERE \(isSame);
                INSERT INTO martlet_capture(type, operation, id)
                    VALUES (\(number), \(Operation.inserted), NEW.\(key));
            END
            """,
            """
            CREATE TRIGGER \(name("update", number)) BEFORE UPDATE ON \(table) WHEN \(on) BEGIN
                \(keyChangeCheck(type, key: key, conflicts))
                \(columns.isEmpty ? "" : update)
            END
            """,
            """
            CREATE TRIGGER \(name("delete", number)) BEFORE DELETE ON \(table) WHEN \(on) BEGIN
                \(into) VALUES (\(number), \(Operation.deleted), OLD.\(key)\(oldRow));
            END
            """,
        ] + unique(type, number, conflicts, image: image)
    }

    /// Returns SQL that refuses another key, by whichever of its names it was set. Text keys differ
    /// if their bytes differ, whatever the column's collation says. A rowid that is not the key is
    /// no part of the record, but an UPDATE OR REPLACE of it removes the row that has it.
    private static func keyChangeCheck(
        _ type: EntityType, key: String, _ conflicts: RowConflicts
    ) -> String {
        let rowID = conflicts.rowID.map { " OR OLD.\($0) IS NOT NEW.\($0)" } ?? ""
        return """
            SELECT RAISE(ABORT, \(literal(refusedKeyChange)))
                    WHERE OLD.\(key) IS NOT NEW.\(key)\(byBytes(type))\(rowID);
            """
    }

    /// Returns SQL after a comparison of two keys that makes equal mean equal bytes.
    private static func byBytes(_ type: EntityType) -> String {
        type.keyKind == .text ? " COLLATE BINARY" : ""
    }

    /// Returns SQL that refuses a text key that the server would not accept, with a sentence that
    /// says what to do.
    private static func textKeyCheck(_ key: String) -> String {
        """
        SELECT RAISE(ABORT, \(literal(refusedTextKey)))
                    WHERE typeof(NEW.\(key)) <> 'text' OR NEW.\(key) = ''
                        OR length(CAST(NEW.\(key) AS BLOB)) > \(Limits.textBytes)
                        OR instr(NEW.\(key), char(0)) > 0
                        OR \(isNotUTF8("NEW.\(key)"));
        """
    }

    /// Returns a condition that is true for a text that is not UTF-8: reading and writing it again
    /// changes some character. SQLite itself changes two valid characters, the last of the first
    /// plane, which are therefore left out. The time grows with the square of the length, so long
    /// texts are not checked.
    private static func isNotUTF8(_ text: String) -> String {
        """
        CASE WHEN \(text) GLOB '*[^ -~]*' AND length(\(text)) <= \(mostReadCharacters) THEN EXISTS (
                            WITH RECURSIVE place(i) AS (
                                SELECT 1 UNION ALL SELECT i + 1 FROM place WHERE i < length(\(text)))
                            SELECT 1 FROM place
                            WHERE char(unicode(substr(\(text), i, 1))) <> substr(\(text), i, 1)
                                AND hex(substr(\(text), i, 1)) NOT IN ('EFBFBE', 'EFBFBF')) END
        """
    }

    /// Returns SQL that refuses an integer key that the server would not accept, and stores the
    /// lowest noted temporary id.
    ///
    /// A row under a permanent key may only replace the record that has the key, and one under a
    /// temporary key only an own record that still exists. Any other row is a new record, whose key
    /// must be new. If a statement names no key, SQLite shows −1 here and chooses one afterwards:
    /// the highest of the table plus one, which may be that of a deleted record. No record has the
    /// key −1.
    ///
    /// An id below all noted ones is new, so nothing else of it is looked up.
    private static func integerKeyCheck(_ key: String, number: Int64) -> String {
        let next = "(SELECT value FROM martlet_state WHERE name = 'nextTemporaryID')"
        let isNext = "\(next) - NEW.\(key) BETWEEN 0 AND \(mostTemporaryIDs)"
        // The plus removes the key's affinity, which would prevent a look-up of the id.
        let record = "type = \(number) AND id = +NEW.\(key)"
        let queued = "SELECT 1 FROM martlet_changes WHERE \(record) AND operation"
        let open = "(SELECT value FROM martlet_state WHERE name = 'openSet')"
        return """
            UPDATE martlet_state SET value = NEW.\(key)
                    WHERE name = 'lowestNotedID' AND value > NEW.\(key) AND \(isNext);
                SELECT CASE
                    WHEN NEW.\(key) = -1 THEN RAISE(ABORT, \(literal(refusedKey)))
                    WHEN changes() OR \(isNext) THEN NULL
                    WHEN EXISTS (\(queued) = \(RecordOperation.delete.rawValue)
                        AND sequence IS NOT \(open))
                        THEN RAISE(ABORT, \(literal(refusedDeletedKey)))
                    WHEN EXISTS (SELECT 1 FROM martlet_withheld WHERE \(record) AND shows)
                        OR CASE WHEN NEW.\(key) < 0
                        THEN EXISTS (\(queued) = \(RecordOperation.create.rawValue))
                        ELSE EXISTS (SELECT 1 FROM martlet_records WHERE \(record)) END THEN NULL
                    ELSE RAISE(ABORT, \(literal(refusedKey))) END;
            """
    }

    /// Returns the triggers that note the rows that a REPLACE on a secondary UNIQUE constraint may
    /// delete. There is none without such a constraint.
    private static func unique(
        _ type: EntityType, _ number: Int64, _ conflicts: RowConflicts, image: String
    ) -> [String] {
        guard !conflicts.indexes.isEmpty else { return [] }
        let table = SQLName.quoted(type.name)
        let key = SQLName.quoted(type.key)
        let other = "\(key) IS NOT"
        func bodies(_ row: String) -> String {
            conflicts.indexes.map { index in
                """
                \(image)
                        WHERE (\(index.isMetByNew)) AND \(other) \(row).\(key)\(byBytes(type));
                """
            }.joined(separator: "\n    ")
        }
        // A row can conflict with another only by these columns, or by any column if one index says
        // so.
        let watched = conflicts.indexes.map(\.watchedColumns)
        let columns =
            watched.contains { $0 == nil } ? nil : Set(watched.compactMap(\.self).joined())
        let of = columns.map { " OF \(SQLName.list($0.sorted()))" } ?? ""
        let nulls = conflicts.nullRefusals(withKey: false)
        let refusals = conflicts.refusals(in: type, withKey: false)
        return [
            """
            CREATE TRIGGER \(name("unique", number)) BEFORE INSERT ON \(table)
            WHEN \(on) BEGIN
                \((nulls + [bodies("NEW")]).joined(separator: "\n    "))
            END
            """,
            """
            CREATE TRIGGER \(name("unique", number))_update BEFORE UPDATE\(of) ON \(table)
            WHEN \(on) BEGIN
                \((nulls + refusals + [bodies("OLD")]).joined(separator: "\n    "))
            END
            """,
        ]
    }
}
