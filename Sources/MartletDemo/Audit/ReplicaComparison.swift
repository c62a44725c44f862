import MartletModel
import SQLiteKit
import SQLiteRecords

/// Compares a device's tables with the server's, row by row and column by column, in the files.
struct ReplicaComparison {
    let schema: Schema
    /// The server's SQLite file of the data set.
    let serverPath: String

    /// Returns the differences in sentences; empty if the replica is equal.
    /// - Parameter conditions: By type, an SQL condition for the rows that the device must have. It
    ///   must have all rows of other types.
    func differences(
        _ path: String, within conditions: [String: String] = [:]
    ) throws -> [String] {
        let connection = try attached(to: path)
        return try schema.types.compactMap {
            try difference($0, within: conditions[$0.name] ?? "true", connection)
        }
    }

    /// Returns the texts of the rows that meet a condition, and of those that do not, of each row
    /// together.
    func texts(_ type: EntityType, _ condition: String) throws -> (met: [String], unmet: [String]) {
        let connection = try attached(to: serverPath)
        let texts = type.attributes.filter { $0.kind == .text }
            .map { "ifnull(\(quoted($0.name)), '')" }.joined(separator: " || ' ' || ")
        var (met, unmet): ([String], [String]) = ([], [])
        let rows = try connection.statement(
            "SELECT (\(condition)) IS TRUE, \(texts) FROM server.\(quoted(type.name))"
        ).rows { (row) throws(SQLiteError) in (row.integer(0) == 1, row.text(1)) }
        for (isMet, text) in rows {
            if isMet { met.append(text) } else { unmet.append(text) }
        }
        return (met, unmet)
    }

    /// Opens a file, with the server's tables next to its own.
    private func attached(to path: String) throws -> Connection {
        let connection = try Connection(path: path, mode: .readOnly)
        let attach = try connection.statement("ATTACH ? AS server")
        attach.bind(1, text: serverPath)
        try attach.run()
        return connection
    }

    private func difference(
        _ type: EntityType, within condition: String, _ connection: Connection
    ) throws -> String? {
        let table = quoted(type.name)
        let wanted = "(SELECT * FROM server.\(table) WHERE \(condition))"
        let here = try connection.integer("SELECT count(*) FROM main.\(table)") ?? 0
        let there = try connection.integer("SELECT count(*) FROM \(wanted)") ?? 0
        let same = ([type.key] + type.attributes.map(\.name))
            .map { "b.\(quoted($0)) IS a.\(quoted($0))" }
            .joined(separator: " AND ")
        let other =
            try connection.integer(
                """
                SELECT count(*) FROM main.\(table) a WHERE NOT EXISTS
                    (SELECT 1 FROM \(wanted) b WHERE \(same))
                """) ?? 0
        guard here != there || other != 0 else { return nil }
        return "\(type.name): \(here) records here, \(there) on the server, \(other) differ"
    }

    private func quoted(_ name: String) -> String { SQLName.quoted(name) }

    /// Returns the number of records of all types in the server's file.
    func recordCount() throws -> Int {
        let connection = try Connection(path: serverPath, mode: .readOnly)
        return try schema.types.reduce(0) { sum, type in
            sum + Int(try connection.integer("SELECT count(*) FROM \(quoted(type.name))") ?? 0)
        }
    }
}
