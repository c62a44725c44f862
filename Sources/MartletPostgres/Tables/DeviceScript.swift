import MartletModel
import SQLiteRecords

/// A table as a device makes it, in SQLite's words.
struct DeviceScript {
    /// - Parameter references: Those of the type that devices are told of.
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
        // Partial indexes and those that join nulls have no equal among constraints here; the
        // server judges them.
        for (columns, index) in reading.uniques where !index.isPartial && !index.joinsNulls {
            lines.append("UNIQUE (\(SQLName.list(columns)))")
        }
        return "CREATE TABLE \(SQLName.quoted(name)) (\n    "
            + lines.joined(separator: ",\n    ") + "\n);\n"
    }

    private static func line(_ column: TableReading.Column, _ reference: Reference?) -> String {
        var line = "\(SQLName.quoted(column.column.name)) \(word(column.attribute.kind))"
        // What only the server can fill in may be missing until it has.
        let isLater = column.attribute.hasDefault && column.deviceDefault == nil
        if column.attribute.isRequired, !isLater { line += " NOT NULL" }
        if let standard = column.deviceDefault { line += " DEFAULT \(standard)" }
        if let reference {
            line += " REFERENCES \(SQLName.quoted(reference.target))"
            if let action = words(reference.onDelete) { line += " ON DELETE \(action)" }
        }
        return line
    }

    /// A declaration that `DeclaredType` takes for the kind, and under which SQLite keeps the value
    /// as it is: NUMERIC alone would make a number of 15 digits of it.
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
