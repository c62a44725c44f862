package import MartletModel
package import SQLiteKit

/// The former names of columns that another program has renamed. Change sets that were made before
/// the renaming are sent under these names.
///
/// The server knows the column by the name that it had when the edit was made.
package struct FormerNames {
    private struct Name {
        let type: Int64
        /// The column's present name.
        let name: String
        let former: String
        /// The sequence of the first set that names the column by its present name.
        let before: Int64
    }

    private static let prefix = "formerly:"
    private var names: [Name] = []

    package var isEmpty: Bool { names.isEmpty }

    /// Reads the names from a device's file.
    package init(_ connection: Connection) throws(SQLiteError) {
        let rows = try connection.statement(
            "SELECT name, value FROM main.martlet_state WHERE name GLOB '\(Self.prefix)*'")
        names = try rows.rows { (row) throws(SQLiteError) -> Name? in
            let parts = row.text(0).dropFirst(Self.prefix.count)
                .split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, let type = Int64(parts[0]), let before = Int64(parts[1]) else {
                return nil
            }
            return Name(type: type, name: String(parts[2]), former: row.text(1), before: before)
        }.compactMap(\.self)
    }

    /// Returns a change's attributes under the names with which they are sent.
    /// - Parameters:
    ///   - type: The number of the record's type.
    ///   - sequence: The sequence of the change's set.
    package func sent(_ attributes: Attributes, type: Int64, sequence: Int64) -> Attributes {
        guard !names.isEmpty else { return attributes }
        let sent = attributes.names.map { name in
            names.filter { $0.type == type && $0.name == name && sequence < $0.before }
                .min { $0.before < $1.before }?.former ?? name
        }
        return Attributes(names: sent, values: attributes.values)
    }

    /// Stores the former names of a type's columns, for sets below `before`. Names that are stored
    /// for these columns already follow them to their present names.
    /// - Parameters:
    ///   - names: The present names of the columns, by their former names.
    ///   - home: Those present names that the columns had at first. The server knows the columns by
    ///     these.
    static func keep(
        _ names: [String: String], home: Set<String>, type: Int64, before: Int64,
        _ connection: Connection
    ) throws(SQLiteError) {
        let known = try FormerNames(connection).names
        let oldest = try connection.integer("SELECT min(sequence) FROM martlet_outbox") ?? before
        for entry in known where entry.before <= oldest { try remove(entry, connection) }
        let followed = known.filter {
            $0.before > oldest && $0.type == type && names[$0.name] != nil
        }
        for entry in followed { try remove(entry, connection) }
        for entry in followed {
            guard let name = names[entry.name], !home.contains(name) else { continue }
            try put(entry.former, of: name, type: type, before: entry.before, connection)
        }
        for (former, name) in names where !home.contains(name) {
            try put(former, of: name, type: type, before: before, connection)
        }
    }

    private static func remove(_ entry: Name, _ connection: Connection) throws(SQLiteError) {
        let row = try connection.prepare("DELETE FROM main.martlet_state WHERE name = ?")
        row.bind(1, text: "\(prefix)\(entry.type):\(entry.before):\(entry.name)")
        try row.run()
    }

    private static func put(
        _ former: String, of name: String, type: Int64, before: Int64, _ connection: Connection
    ) throws(SQLiteError) {
        let row = try connection.prepare("INSERT OR REPLACE INTO main.martlet_state VALUES (?, ?)")
        row.bind(1, text: "\(prefix)\(type):\(before):\(name)")
        row.bind(2, text: former)
        try row.run()
    }
}
