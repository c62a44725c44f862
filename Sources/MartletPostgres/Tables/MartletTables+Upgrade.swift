import MartletServerCore
import PostgresKit

/// What a database says of the data set in it.
package struct PostgresDataSet: Hashable, Sendable {
    package let name: String
    package let identity: String
    /// The form of Martlet's own tables.
    package let format: Int64
}

extension MartletTables {
    /// From a format to the one above it: what brings the tables there.
    typealias Steps = [Int64: String]

    /// Format 2 can say that other programs' writes are read from the write-ahead log.
    static let steps: Steps = [1: capture]

    /// The data set of the database; nil where there is none.
    static func dataSet(on connection: PostgresConnection) throws -> PostgresDataSet? {
        let known = try connection.query(
            "SELECT pg_catalog.to_regclass('_martlet.dataset') IS NOT NULL")
        guard try known.boolean(0, 0) else { return nil }
        let rows = try connection.query("SELECT name, identity, format FROM _martlet.dataset")
        guard rows.count == 1 else {
            throw AdoptionError(
                "the schema “_martlet” of the database holds no data set",
                "look what else made it, and drop it with DROP SCHEMA _martlet CASCADE")
        }
        return PostgresDataSet(
            name: try rows.text(0, 0), identity: try rows.text(0, 1),
            format: try rows.integer(0, 2))
    }

    /// Makes Martlet's tables in a database that has none, within the open transaction.
    /// - Parameter identity: 32 random hexadecimal digits.
    static func create(
        on connection: PostgresConnection, name: String, identity: String
    ) throws(PostgresError) {
        try connection.execute(script)
        _ = try connection.query(
            """
            INSERT INTO _martlet.dataset (number, format, name, identity, revision, floor, hash) \
            VALUES (1, $1, $2, $3, 0, 0, $4)
            """,
            [
                .integer(format), .text(name), .text(identity),
                .binary(LineageHash(origin: identity).bytes),
            ])
    }

    /// Brings the tables from an older release's form to this one's, in one transaction; nothing
    /// where they have it. Several processes may do it at once: one does, the others wait.
    /// - Throws: `AdoptionError` for tables that a newer release wrote, or none; `PostgresError`.
    static func upgrade(
        on connection: PostgresConnection, steps: Steps = steps, to target: Int64 = format
    ) throws {
        guard let found = try dataSet(on: connection) else {
            throw AdoptionError(
                "the database holds no data set",
                "make one with martlet postgres init or martlet postgres adopt")
        }
        guard found.format != target else { return }
        guard found.format < target else { throw newer(found.format, target) }
        try connection.transaction {
            let rows = try connection.query("SELECT format FROM _martlet.dataset FOR UPDATE")
            let start = try rows.integer(0, 0)
            guard start <= target else { throw newer(start, target) }
            for format in start..<target {
                guard let step = steps[format] else {
                    throw AdoptionError(
                        "Martlet's tables are of format \(format), which this version cannot upgrade",
                        "start a version between the one that wrote them and this one first")
                }
                try connection.execute(step)
                _ = try connection.query(
                    "UPDATE _martlet.dataset SET format = $1", [.integer(format + 1)])
            }
        }
    }

    private static func newer(_ found: Int64, _ known: Int64) -> AdoptionError {
        AdoptionError(
            """
            the database was written by a newer version of Martlet (format \(found), this one knows \
            \(known))
            """, "use that version")
    }
}
