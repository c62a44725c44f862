import MartletModel
import SQLiteKit
import SQLiteRecords

/// Compares a device's tables with the server's, row by row and column by column, in the files.
struct ReplicaComparison {
    let schema: Schema
    /// The server's SQLite file of the data set.
    let serverPath: String

    /// Returns the differences in sentences; empty if the replica is equal.
    func differences(_ path: String) throws -> [String] {
        let connection = try Connection(path: path, mode: .readOnly)
        let attach = try connection.statement("ATTACH ? AS server")
        attach.bind(1, text: serverPath)
        try attach.run()
        return try schema.types.compactMap { try difference($0, connection) }
    }

    private func difference(_ type: EntityType, _ connection: Connection) throws -> String? {
        let table = quoted(type.name)
        let here = try connection.integer("SELECT count(*) FROM main.\(table)") ?? 0
        let there = try connection.integer("SELECT count(*) FROM server.\(table)") ?? 0
        let same = ([type.key] + type.attributes.map(\.name))
            .map { "b.\(quoted($0)) IS a.\(quoted($0))" }
            .joined(separator: " AND ")
        let other =
            try connection.integer(
                """
                SELECT count(*) FROM main.\(table) a WHERE NOT EXISTS
                    (SELECT 1 FROM server.\(table) b WHERE \(same))
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
