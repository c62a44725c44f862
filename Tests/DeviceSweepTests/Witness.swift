import Martlet
import MartletDevice
import MartletStore
import MartletTesting
import SQLiteKit

/// What the tables of one device have shown, and so what its exchanges may do.
///
/// An exchange overwrites or deletes for others only what its device has shown, and what was saved on the device
/// and is neither refused nor withheld is there afterwards.
final class Witness {
    typealias Rows = WrittenWorld.Rows

    private let tables: [RandomTable]
    /// What a table has shown of each column of a record, by table and key.
    private var shown: [String: [String: [Set<String>]]] = [:]
    /// The tables of the device after its last exchange, without those that were away.
    private var base: Rows = [:]

    init(_ schema: RandomSchema) { tables = schema.tables }

    /// Stands before the value of a column that another program has given another name.
    private static let away = "away "

    /// Reads what the tables show, without tables that are away.
    static func visible(_ schema: RandomSchema, _ connection: Connection) -> Rows {
        var rows: Rows = [:]
        for table in schema.tables { rows[table.name] = try? read(table, connection) }
        return rows
    }

    /// Reads what the tables show an app within its save. All columns are there if it can save.
    static func visible(_ schema: RandomSchema, _ context: ReadContext) throws -> Rows {
        var rows: Rows = [:]
        for table in schema.tables {
            let names = [table.key] + table.columns.map(\.name)
            let found = try context.rows(select(table, names)).map { row in
                row.values.map { value in
                    if case .text(let text) = value { text } else { "NULL" }
                }
            }
            rows[table.name] = byKey(found)
        }
        return rows
    }

    /// Reads a table. A column that has another name is known by its position.
    static func read(
        _ table: RandomTable, _ connection: Connection
    ) throws(SQLiteError) -> [String: [String]] {
        let listing = try connection.prepare(
            "SELECT name FROM pragma_table_info(\(table.quoted)) ORDER BY cid")
        let names = try listing.rows { (row) throws(SQLiteError) in row.text(0) }
        let statement = try connection.prepare(select(table, names))
        let found = try statement.rows { (row) throws(SQLiteError) in
            (0...table.columns.count).map { row.text(Int32($0)) }
        }
        return byKey(found)
    }

    /// - Parameter names: The names of the columns, in the table's order, which begins with the key.
    private static func select(_ table: RandomTable, _ names: [String]) -> String {
        // In this form SQLite takes no missing column for a text.
        let values = zip([table.key] + table.columns.map(\.name), names).map { name, now in
            let value = "quote(own.\(RandomTable.quoted(now)))"
            // By bytes: another composition of the letters is another name.
            return Array(name.utf8) == Array(now.utf8) ? value : "'\(Self.away)' || \(value)"
        }
        return values.isEmpty
            ? "SELECT * FROM \(table.quoted)"
            : "SELECT \(values.joined(separator: ", ")) FROM \(table.quoted) AS own"
    }

    private static func byKey(_ found: [[String]]) -> [String: [String]] {
        let rows = found.map { ($0[0], Array($0.dropFirst())) }
        return Dictionary(rows, uniquingKeysWith: { first, _ in first })
    }

    /// The tables that have all of their columns.
    private static func whole(_ rows: Rows) -> Rows {
        rows.filter { _, rows in
            !rows.values.contains { $0.contains { $0.hasPrefix(away) } }
        }
    }

    func see(_ rows: Rows) {
        for (table, rows) in rows {
            for (key, row) in rows { see(table, key, row) }
        }
    }

    private func see(_ table: String, _ key: String, _ row: [String]) {
        let none = [Set<String>](repeating: [], count: row.count)
        for (index, value) in row.enumerated() {
            let isAway = value.hasPrefix(Self.away)
            let value = isAway ? String(value.dropFirst(Self.away.count)) : value
            shown[table, default: [:]][key, default: none][index].insert(value)
            if isAway { shown[table]?[key]?[index].insert(Self.away) }
        }
    }

    /// Notes what the tables show after an exchange. What is in them now is no edit that waits, but for withheld
    /// records: they are edited if they differ from what the server has.
    func converge(_ rows: Rows, _ served: Rows, withheld: [WithheldRecord]) {
        see(rows)
        base = Self.whole(rows)
        for record in withheld {
            let key =
                switch record.id {
                case .integer(let number): "\(number)"
                case .text(let text): "'\(text.replacing("'", with: "''"))'"
                }
            guard base[record.type] != nil, let row = served[record.type]?[key] else { continue }
            base[record.type]?[key] = row
        }
    }

    /// Notes what came into the tables when the device was opened: the server had sent it while something was away, and
    /// nobody has saved it.
    func cameIn(_ before: Rows, _ after: Rows) {
        see(after)
        for (table, rows) in Self.whole(after) where base[table] != nil {
            let old = before[table] ?? [:]
            for key in Set(old.keys).union(rows.keys) where old[key] != rows[key] {
                base[table]?[key] = rows[key]
            }
        }
    }

    /// Whether a reference that became NULL refers to a record that is deleted, and the device could not show it:
    /// another program has given the column another name. The device knows the row without this value, and the
    /// server follows the reference.
    private func isFollowed(
        _ column: RandomColumn, _ value: String, _ new: String, shown: Set<String>?, _ served: Rows
    ) -> Bool {
        guard let target = column.target, new == "NULL", shown?.contains(Self.away) == true else {
            return false
        }
        return served[tables[target].name]?[value] == nil
    }

    /// Returns what an exchange has done to rows of the server that the device has not shown.
    func unseen(_ known: Rows, _ served: Rows) -> [String] {
        var faults: [String] = []
        for table in tables {
            let after = served[table.name] ?? [:]
            for (key, row) in known[table.name] ?? [:] {
                let shown = shown[table.name]?[key]
                if shown == nil, after[key] == nil {
                    faults.append("\(table.name) \(key) was deleted")
                }
                for (index, column) in table.columns.enumerated() {
                    let value = row[index]
                    // Who deletes a record has seen the record, and maybe not all of it.
                    guard let new = after[key]?[index] else { continue }
                    guard new != value, shown?[index].contains(value) != true,
                        !isFollowed(column, value, new, shown: shown?[index], served)
                    else { continue }
                    faults.append(
                        "\(table.name) \(key).\(column.name): \(value) became \(new)")
                }
            }
            // What the device has sent is what it has shown.
            for (key, row) in after where known[table.name]?[key] != row {
                see(table.name, key, row)
            }
        }
        return faults
    }

    /// Returns what was saved since the last exchange, and is not there after this one.
    func missing(_ before: Rows, _ after: Rows) -> [String] {
        let (before, after) = (Self.whole(before), Self.whole(after))
        return tables.flatMap { table in
            guard let old = base[table.name], let saved = before[table.name],
                let found = after[table.name]
            else { return [String]() }
            return missing(table, (before, after), old: old, saved: saved, found: found)
        }
    }

    /// The values of a row that was saved, as they arrive, without references to records whose keys became others
    /// or that are gone.
    private func judged(
        _ table: RandomTable, _ row: [String], _ rows: (before: Rows, after: Rows)
    ) -> [String?] {
        zip(table.columns, row).map { column, value in
            guard let target = column.target, value != "NULL" else {
                return column.carried(value)
            }
            let name = tables[target].name
            return rows.before[name]?[value] == nil || rows.after[name]?[value] == nil ? nil : value
        }
    }

    /// Whether a row, or one that it needs, refers to a record that a program without foreign keys has deleted: the
    /// server follows the reference, and the row may go as well.
    private func dangles(
        _ table: RandomTable, _ row: [String], _ rows: Rows, depth: Int = 0
    ) -> Bool {
        zip(table.columns, row).contains { column, value in
            guard let target = column.target, value != "NULL", depth < 8 else { return false }
            guard let parent = rows[tables[target].name]?[value] else { return true }
            return dangles(tables[target], parent, rows, depth: depth + 1)
        }
    }

    private func missing(
        _ table: RandomTable, _ rows: (before: Rows, after: Rows), old: [String: [String]],
        saved: [String: [String]], found: [String: [String]]
    ) -> [String] {
        var faults: [String] = []
        var made: [[String?]] = []
        for (key, row) in saved where !dangles(table, row, rows.before) {
            // A temporary key becomes another one.
            if !table.isText, key.hasPrefix("-") {
                if old[key] == nil { made.append(judged(table, row, rows)) }
                continue
            }
            for (index, value) in judged(table, row, rows).enumerated() {
                let (before, after) = (old[key]?[index], found[key]?[index])
                guard let value, before != row[index],
                    after.map({ table.columns[index].carried($0) }) != value
                else { continue }
                faults.append(
                    "\(table.name) \(key).\(table.columns[index].name): \(row[index]) was saved, "
                        + "and is \(after ?? "gone")")
            }
        }
        var others = found.filter { old[$0.key] == nil }.map { _, row in
            zip(table.columns, row).map { $0.carried($1) }
        }
        // Rows with the most judged columns come first, so that they find their own match.
        made.sort { one, other in one.count { $0 == nil } < other.count { $0 == nil } }
        for row in made {
            let index = others.firstIndex { other in
                zip(row, other).allSatisfy { $0 == nil || $0 == $1 }
            }
            if let index {
                others.remove(at: index)
            } else {
                faults.append("\(table.name): a new record of \(row) is not there")
            }
        }
        for key in old.keys where saved[key] == nil && found[key] != nil {
            if !table.isText, key.hasPrefix("-") { continue }
            faults.append("\(table.name) \(key) was deleted, and is there")
        }
        return faults
    }
}

extension RandomColumn {
    /// A value as it arrives: numbers and texts in a column of binary data are their bytes then.
    fileprivate func carried(_ value: String) -> String {
        guard kind == .blob, target == nil, value != "NULL", !value.hasPrefix("X'") else {
            return value
        }
        var text = value
        if value.hasPrefix("'") {
            text = String(value.dropFirst().dropLast()).replacing("''", with: "'")
        }
        let digits = text.utf8.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }
        return "X'\(digits.joined())'"
    }
}
