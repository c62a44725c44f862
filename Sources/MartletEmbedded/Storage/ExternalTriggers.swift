import MartletModel
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// The triggers in a data set's file that note external writes: they put the record's address into
/// `martlet_outside`.
///
/// They are part of the file, so they run in every program that writes. Within the server's own
/// transactions `martlet_dataset.applying` is 1, and they do nothing.
struct ExternalTriggers {
    private let schema: Schema
    private let numbers: [Int64]

    /// Prepares the triggers of a schema.
    ///
    /// - Parameter numbers: The numbers of the types in Martlet's tables, in the schema's order.
    init(schema: Schema, numbers: [Int64]) {
        self.schema = schema
        self.numbers = numbers
    }

    /// Drops all of them, so that tables can be changed as if there were none.
    static func remove(from connection: Connection) throws(SQLiteError) {
        let statement = try connection.prepare(
            """
            SELECT name FROM main.sqlite_schema \
            WHERE type = 'trigger' AND name LIKE 'martlet\\_outside\\_%' ESCAPE '\\'
            """)
        let names = try statement.rows { (row) throws(SQLiteError) in row.text(0) }
        statement.reset()
        for name in names {
            try connection.execute("DROP TRIGGER main.\(SQLName.quoted(name))")
        }
    }

    /// Creates all of them. There must be none.
    func install(on connection: Connection) throws(SQLiteError) {
        let actions = try ReferenceActions(connection)
        for (type, number) in zip(schema.types, numbers) {
            for sql in triggers(type, number, try RowConflicts(type, actions, connection)) {
                try connection.execute(sql)
            }
        }
    }

    private func triggers(
        _ type: EntityType, _ number: Int64, _ conflicts: RowConflicts
    ) -> [String] {
        let table = SQLName.quoted(type.name)
        let key = SQLName.quoted(type.key)
        func trigger(_ word: String, _ event: String, _ body: [String]) -> String {
            """
            CREATE TRIGGER martlet_outside_\(word)_\(number) \(event) ON \(table) \
            WHEN (SELECT applying FROM martlet_dataset WHERE number = 1) = 0 \
            BEGIN \(body.joined(separator: " ")) END
            """
        }
        let note = "INSERT INTO martlet_outside (type, id)"
        // Text keys differ if their bytes differ, whatever the column's collation is.
        let byBytes = type.keyKind == .text ? " COLLATE BINARY" : ""
        let isMoved = "OLD.\(key) IS NOT NEW.\(key)\(byBytes)"
        var triggers = [
            trigger("insert", "AFTER INSERT", ["\(note) VALUES (\(number), NEW.\(key));"]),
            trigger(
                "update", "AFTER UPDATE",
                [
                    "\(note) VALUES (\(number), NEW.\(key));",
                    "\(note) SELECT \(number), OLD.\(key) WHERE \(isMoved);",
                ]),
            trigger("delete", "AFTER DELETE", ["\(note) VALUES (\(number), OLD.\(key));"]),
        ]
        // If `recursive_triggers` is off, as in most programs, REPLACE removes conflicting rows
        // without firing triggers. A row with the same integer key is noted as the new one.
        let meetings =
            (type.keyKind == .integer ? [] : conflicts.keyConditions)
            + conflicts.indexes.map(\.isMetByNew)
        let meeting = meetings.map {
            "\(note) SELECT \(number), \(key) FROM \(table) AS martlet_row WHERE (\($0))"
        }
        let nulls = conflicts.nullRefusals(withKey: true)
        if !meeting.isEmpty {
            triggers.append(trigger("meet", "BEFORE INSERT", nulls + meeting.map { $0 + ";" }))
        }
        let moves =
            nulls + conflicts.refusals(in: type, withKey: true)
            + meeting.map { "\($0) AND \(key) IS NOT OLD.\(key)\(byBytes);" }
        if !moves.isEmpty { triggers.append(trigger("move", "BEFORE UPDATE", moves)) }
        return triggers
    }
}
