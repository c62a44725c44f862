import MartletModel
import SQLiteRecords

/// Writes the SQLite statement that makes a table on a device.
struct DeviceScript {
    /// Returns the CREATE TABLE statement.
    /// - Parameter references: The references of the type that devices know.
    static func statement(
        _ name: String, key: TableReading.Column, _ reading: TableReading,
        references: [Reference]
    ) -> String {
        let word = key.column.form.keyKind == .integer ? "INTEGER" : "TEXT"
        var lines = [
            "\(SQLName.quoted(key.column.name)) \(word) PRIMARY KEY"
                + (word == "TEXT" ? " NOT NULL" : "")
        ]
        for column in reading.columns {
            let reference = references.first { $0.attribute == column.column.name }
            lines.append(line(column, reference))
        }
        // Partial indexes, and indexes that treat nulls as equal, have no equivalent among
        // constraints here; the server checks them.
        for (columns, index) in reading.uniques where !index.isPartial && !index.joinsNulls {
            lines.append("UNIQUE (\(SQLName.list(columns)))")
        }
        return "CREATE TABLE \(SQLName.quoted(name)) (\n    "
            + lines.joined(separator: ",\n    ") + "\n);\n"
    }

    private static func line(_ column: TableReading.Column, _ reference: Reference?) -> String {
        var line = "\(SQLName.quoted(column.column.name)) \(word(column.attribute.kind))"
        // If only the server can fill a value in, it may be missing until then.
        let isLater = column.attribute.hasDefault && column.deviceDefault == nil
        if column.attribute.isRequired, !isLater { line += " NOT NULL" }
        if let standard = column.deviceDefault { line += " DEFAULT \(standard)" }
        if let reference {
            line += " REFERENCES \(SQLName.quoted(reference.target))"
            if let action = words(reference.onDelete) { line += " ON DELETE \(action)" }
        }
        return line
    }

    /// Returns a declaration that `DeclaredType` reads as the kind, and under which SQLite stores
    /// the value unchanged. With NUMERIC alone, SQLite would reduce it to a number of 15 digits.
    private static func word(_ kind: AttributeKind) -> String {
        switch kind {
        case .boolean: "BOOLEAN"
        case .integer: "INTEGER"
        case .real: "REAL"
        case .numeric: "NUMERIC TEXT"
        case .blob: "BLOB"
        case .text, .any: "TEXT"
        }
    }

    private static func words(_ action: Reference.Action) -> String? {
        switch action {
        case .noAction: nil
        case .restrict: "RESTRICT"
        case .cascade: "CASCADE"
        case .setNull: "SET NULL"
        case .setDefault: "SET DEFAULT"
        }
    }
}
