internal import MartletModel
internal import MartletProtocol
package import SQLiteKit
internal import SQLiteRecords

/// The columns that another program added and that no value from the server has named yet. The
/// server need not have them.
///
/// A new record that has the default in such a column does not name it to the server. A column is
/// announced once the server sends a value for it, or the app's schema declares it.
package struct UnannouncedColumns {
    private let connection: Connection

    private static let prefix = "unannounced:"

    package init(_ connection: Connection) { self.connection = connection }

    /// Returns the columns of each type, by its number.
    func all() throws(SQLiteError) -> [Int64: Set<String>] {
        let rows = try connection.prepare(
            "SELECT name FROM main.martlet_state WHERE name GLOB '\(Self.prefix)*'")
        var all: [Int64: Set<String>] = [:]
        _ = try rows.rows { (row) throws(SQLiteError) -> Void in
            let parts = row.text(0).dropFirst(Self.prefix.count)
                .split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let number = Int64(parts[0]) else { return }
            all[number, default: []].insert(String(parts[1]))
        }
        return all
    }

    /// Returns whether a column is one of them.
    func contains(_ name: String, of number: Int64) throws(SQLiteError) -> Bool {
        let find = try connection.statement("SELECT 1 FROM main.martlet_state WHERE name = ?")
        find.bind(1, text: Self.key(name, number))
        defer { find.reset() }
        return try find.step()
    }

    func add(_ names: Set<String>, of number: Int64) throws(SQLiteError) {
        for name in names {
            try run("INSERT OR REPLACE INTO main.martlet_state VALUES (?, 1)", name, number)
        }
    }

    func remove(_ name: String, of number: Int64) throws(SQLiteError) {
        try run("DELETE FROM main.martlet_state WHERE name = ?", name, number)
    }

    /// Renames columns.
    /// - Parameter names: The present names, by the former ones.
    func rename(_ names: [String: String], of number: Int64) throws(SQLiteError) {
        var renamed: Set<String> = []
        for (name, new) in names where try contains(name, of: number) {
            try remove(name, of: number)
            renamed.insert(new)
        }
        try add(renamed, of: number)
    }

    func removeAll() throws(SQLiteError) {
        try connection.execute(
            "DELETE FROM main.martlet_state WHERE name GLOB '\(Self.prefix)*'")
    }

    private static func key(_ name: String, _ number: Int64) -> String {
        "\(prefix)\(number):\(name)"
    }

    private func run(_ sql: String, _ name: String, _ number: Int64) throws(SQLiteError) {
        let statement = try connection.statement(sql)
        statement.bind(1, text: Self.key(name, number))
        try statement.run()
    }
}

extension LocalStore {
    /// Notes that the server has sent values of these columns.
    package func announce(_ names: some Sequence<String>, of type: Int) throws {
        guard let columns = unannounced[type] else { return }
        for name in names where columns[name] != nil {
            try UnannouncedColumns(connection).remove(name, of: numbers[type])
            tables[type].ownColumns.remove(name)
        }
    }

    /// Returns whether a value is the default of a column that the server need not have, so that it
    /// is not sent.
    func saysNothing(_ value: Value, of name: String, type: Int) throws -> Bool {
        guard let columns = unannounced[type], columns[name] == value else { return false }
        return try UnannouncedColumns(connection).contains(name, of: numbers[type])
    }

    /// Returns the defaults of the columns that the server need not have, by the type's position
    /// and the column's name.
    static func unannounced(
        _ schema: Schema, _ numbers: [Int64], _ connection: Connection
    ) throws -> [Int: [String: Value]] {
        let all = try UnannouncedColumns(connection).all()
        guard !all.isEmpty else { return [:] }
        var unannounced: [Int: [String: Value]] = [:]
        for (index, number) in numbers.enumerated() {
            for name in all[number] ?? [] {
                guard let attribute = schema.types[index][attribute: name] else { continue }
                unannounced[index, default: [:]][name] = try ColumnDefault.value(
                    of: attribute, table: schema.types[index].name, connection)
            }
        }
        return unannounced
    }
}
