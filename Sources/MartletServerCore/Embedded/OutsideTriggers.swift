import MartletCore
import SQLiteKit
import SQLiteRecords

/// The triggers in a data set's file that note what other programs write: which record, in
/// `martlet_outside`.
///
/// They are part of the file, so they run in whatever program writes. Within the server's own
/// transactions `martlet_dataset.applying` is 1, and they do nothing.
struct OutsideTriggers {
    private let schema: Schema
    private let numbers: [Int64]

    /// - Parameter numbers: Of the types in Martlet's tables, in the schema's order.
    init(schema: Schema, numbers: [Int64]) {
        self.schema = schema
        self.numbers = numbers
    }

    /// Drops all of them: tables can then be changed as if there were none.
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

    /// Makes all of them; there must be none.
    func install(on connection: Connection) throws(SQLiteError) {
        for (type, number) in zip(schema.types, numbers) {
            for sql in triggers(type, number) { try connection.execute(sql) }
        }
    }

    private func triggers(_ type: EntityType, _ number: Int64) -> [String] {
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
        var triggers = [
            trigger("insert", "AFTER INSERT", ["\(note) VALUES (\(number), NEW.\(key));"]),
            trigger(
                "update", "AFTER UPDATE",
                [
                    "\(note) VALUES (\(number), NEW.\(key));",
                    "\(note) SELECT \(number), OLD.\(key) WHERE OLD.\(key) IS NOT NEW.\(key);",
                ]),
            trigger("delete", "AFTER DELETE", ["\(note) VALUES (\(number), OLD.\(key));"]),
        ]
        // REPLACE removes the rows in its way without a word where `recursive_triggers` is off, as
        // it is in most programs.
        let meeting = uniques(of: type).map { columns in
            let same = columns.map { "\(SQLName.quoted($0)) = NEW.\(SQLName.quoted($0))" }
            return "\(note) SELECT \(number), \(key) FROM \(table) "
                + "WHERE \(same.joined(separator: " AND "))"
        }
        if !meeting.isEmpty {
            triggers.append(trigger("meet", "BEFORE INSERT", meeting.map { $0 + ";" }))
            triggers.append(
                trigger(
                    "move", "BEFORE UPDATE",
                    meeting.map { "\($0) AND \(key) IS NOT OLD.\(key);" }))
        }
        return triggers
    }

    /// Those whose columns have their values before the row is written.
    private func uniques(of type: EntityType) -> [[String]] {
        type.uniques.filter { columns in
            !columns.isEmpty
                && columns.allSatisfy {
                    $0 != type.key && type[attribute: $0]?.isGenerated == false
                }
        }
    }
}
