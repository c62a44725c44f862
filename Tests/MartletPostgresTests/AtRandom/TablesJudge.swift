import MartletModel
import PostgresKit

/// Compares what a device has that follows the log with what the tables hold, value by value.
struct TablesJudge {
    /// Where they differ.
    struct Difference: CustomStringConvertible {
        let type: String
        /// Other names of the table.
        let table: String?
        let column: String?
        let description: String
    }

    let connection: PostgresConnection
    let folded: FoldedLog
    /// Rows of which the server's log has said that no device can be sent them: type and id.
    let leftOut: Set<[String]>

    /// - Throws: `PostgresError`.
    func differences() throws -> [Difference] {
        try connection.execute("SET DateStyle = ISO; SET TimeZone = 'UTC'")
        var found: [Difference] = []
        let tables = try LiveTable.all(connection)
        let names = try connection.query("SELECT name FROM _martlet.types ORDER BY number")
        for row in 0..<names.count {
            let name = try names.text(row, 0)
            guard !tables.contains(where: { $0.type == name }) else { continue }
            if folded.records[name]?.isEmpty == false {
                found.append(
                    Difference(
                        type: name, table: nil, column: nil, description: "\(name) is no table"))
            }
        }
        for table in tables { found += try differences(of: table) }
        return found
    }

    /// The ids of records that a device has, whose rows no device can be sent any more, and in which a value
    /// that it has is another one now.
    func unseen(of table: LiveTable) throws -> [String] {
        guard let key = table.key else { return [] }
        let columns = table.columns.filter { !$0.isKey }
        let rows = try connection.query(
            """
            SELECT \(key.quoted)::text\(columns.map { ", " + Self.text(of: $0) }.joined()) \
            FROM \(table.sql) WHERE \(Self.isOdd(key, columns))
            """)
        var found: [String] = []
        for row in 0..<rows.count {
            let id = FoldedLog.ID(try rows.text(row, 0))
            let isOther = try columns.enumerated().contains { index, column in
                guard let held = folded.records[table.type]?[id]?.values[column.name] else {
                    return false
                }
                let text = rows.isNull(row, index + 1) ? nil : try rows.text(row, index + 1)
                return !Self.isSame(held, text, column)
            }
            if isOther { found.append(id.description) }
        }
        return found
    }

    private func differences(of table: LiveTable) throws -> [Difference] {
        func difference(_ words: String, _ column: String? = nil) -> Difference {
            Difference(
                type: table.type, table: table.name, column: column,
                description: "\(table.type): \(words)")
        }
        guard let key = table.key else { return [difference("it has no key of one column")] }
        let columns = table.columns.filter { !$0.isKey }
        let rows = try connection.query(
            """
            SELECT \(key.quoted)::text, \(Self.isOdd(key, columns))\
            \(columns.map { ", " + Self.text(of: $0) }.joined()) FROM \(table.sql)
            """)
        var found: [Difference] = []
        var replica = folded.records[table.type] ?? [:]
        for row in 0..<rows.count {
            let id = FoldedLog.ID(try rows.text(row, 0))
            let record = replica.removeValue(forKey: id)
            if try rows.boolean(row, 1) {
                if !leftOut.contains([table.type, id.description]) {
                    found.append(difference("\(id) cannot be sent, and nobody was told"))
                }
                continue
            }
            guard let record else {
                found.append(difference("devices do not have \(id)"))
                continue
            }
            for (index, column) in columns.enumerated() {
                let text = rows.isNull(row, index + 2) ? nil : try rows.text(row, index + 2)
                let held = record.values[column.name]
                if !Self.isSame(held, text, column) {
                    let has = held.map { "\($0)".prefix(40) } ?? "null"
                    found.append(
                        difference(
                            "\(id).\(column.name): devices have \(has), not \(text?.prefix(40) ?? "null")",
                            column.name))
                }
            }
        }
        for id in replica.keys { found.append(difference("devices have \(id)")) }
        return found
    }

    /// Whether no device can be sent a row.
    private static func isOdd(_ key: LiveTable.Column, _ columns: [LiveTable.Column]) -> String {
        let isInteger = ["int2", "int4", "int8"].contains(key.type)
        let ends = columns.filter(\.isNumber).map {
            "coalesce(\($0.quoted) IN ('NaN', 'Infinity', '-Infinity'), false)"
        }
        let bad = isInteger ? "\(key.quoted) <= 0" : "\(key.quoted)::text = ''"
        return ([bad] + ends).joined(separator: " OR ")
    }

    private static func text(of column: LiveTable.Column) -> String {
        switch column.type {
        case "bytea": "translate(encode(\(column.quoted), 'base64'), E'\\n', '')"
        case "bpchar": "CASE WHEN \(column.quoted) IS NOT NULL THEN concat(\(column.quoted)) END"
        default: "\(column.quoted)::text"
        }
    }

    private static func isSame(_ held: Value?, _ text: String?, _ column: LiveTable.Column) -> Bool
    {
        switch (held ?? .null, text) {
        case (.null, nil): true
        case (.real(let number), let text?): Double(text) == number
        case (.integer(let number), let text?) where column.isNumber: Double(text) == Double(number)
        case (.integer(let number), let text?): String(number) == text
        case (.boolean(let value), let text?): String(value) == text
        case (.text(let value), let text?): Array(value.utf8) == Array(text.utf8)
        default: false
        }
    }
}
