import MartletTesting
import SQLiteKit

/// What the tables of one device have shown, and so what its exchanges may do.
///
/// An exchange overwrites or deletes for others only what its device has shown, and what was saved on the device
/// and is neither refused nor withheld is there afterwards.
struct Witness {
    typealias Rows = WrittenWorld.Rows

    private let tables: [RandomTable]
    /// What a table has shown of each column of a record, by table and key.
    private var shown: [String: [String: [Set<String>]]] = [:]
    /// The tables of the device after its last exchange, without those that were away.
    private var base: Rows = [:]

    init(_ schema: RandomSchema) { tables = schema.tables }

    /// Reads what the tables show, without tables that are away.
    static func visible(_ schema: RandomSchema, _ connection: Connection) -> Rows {
        var rows: Rows = [:]
        for table in schema.tables { rows[table.name] = try? read(table, connection) }
        return rows
    }

    static func read(
        _ table: RandomTable, _ connection: Connection
    ) throws(SQLiteError) -> [String: [String]] {
        // In this form SQLite takes no missing column for a text.
        let values = ([table.quotedKey] + table.columns.map(\.quoted)).map { "quote(own.\($0))" }
        let select = "SELECT \(values.joined(separator: ", ")) FROM \(table.quoted) AS own"
        let found = try connection.prepare(select).rows { (row) throws(SQLiteError) in
            values.indices.map { row.text(Int32($0)) }
        }
        let rows = found.map { ($0[0], Array($0.dropFirst())) }
        return Dictionary(rows, uniquingKeysWith: { first, _ in first })
    }

    mutating func see(_ rows: Rows) {
        for (table, rows) in rows {
            for (key, row) in rows { see(table, key, row) }
        }
    }

    private mutating func see(_ table: String, _ key: String, _ row: [String]) {
        let none = [Set<String>](repeating: [], count: row.count)
        for (index, value) in row.enumerated() {
            shown[table, default: [:]][key, default: none][index].insert(value)
        }
    }

    /// Notes what the tables show after an exchange. What is in them now is no edit that waits.
    mutating func settle(_ rows: Rows) {
        see(rows)
        base = rows
    }

    /// Returns what an exchange has done to rows of the server that the device has not shown.
    mutating func unseen(_ known: Rows, _ served: Rows) -> [String] {
        var faults: [String] = []
        for table in tables {
            let after = served[table.name] ?? [:]
            for (key, row) in known[table.name] ?? [:] {
                let shown = shown[table.name]?[key]
                if shown == nil, after[key] == nil {
                    faults.append("\(table.name) \(key) was deleted")
                }
                for (index, column) in table.columns.enumerated() where column.target == nil {
                    let value = row[index]
                    // Who deletes a record has seen the record, and maybe not all of it.
                    guard let new = after[key]?[index] else { continue }
                    guard new != value, shown?[index].contains(value) != true else { continue }
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
        tables.flatMap { table in
            guard let old = base[table.name], let saved = before[table.name],
                let found = after[table.name]
            else { return [String]() }
            return missing(table, old: old, saved: saved, found: found)
        }
    }

    private func missing(
        _ table: RandomTable, old: [String: [String]], saved: [String: [String]],
        found: [String: [String]]
    ) -> [String] {
        // Numbers and texts in a column of binary data arrive as such.
        let own = table.columns.indices.filter {
            table.columns[$0].target == nil && table.columns[$0].kind != .blob
        }
        var faults: [String] = []
        var made: [[String]] = []
        for (key, row) in saved {
            // A temporary key becomes another one.
            if !table.isText, key.hasPrefix("-") {
                if old[key] == nil { made.append(own.map { row[$0] }) }
                continue
            }
            for index in own where old[key]?[index] != row[index] {
                guard found[key]?[index] != row[index] else { continue }
                faults.append(
                    "\(table.name) \(key).\(table.columns[index].name): \(row[index]) was saved, "
                        + "and is \(found[key]?[index] ?? "gone")")
            }
        }
        var others = found.filter { old[$0.key] == nil }.map { _, row in own.map { row[$0] } }
        for row in made {
            if let place = others.firstIndex(of: row) {
                others.remove(at: place)
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
