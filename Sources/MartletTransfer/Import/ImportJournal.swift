import Martlet
import MartletModel
import MartletStore

/// The record of earlier imports into a device's file, which the file contains.
struct ImportJournal: Sendable {
    let client: MartletClient

    /// The state of one source.
    struct Table: Hashable, Sendable {
        let fingerprint: String
        /// The number of records written.
        let done: Int
        let total: Int
        /// A hash of these records; nil if an older version wrote them.
        let written: String?

        /// Returns whether a source is the same, or the same up to the last record that was written: the rest
        /// was corrected.
        func isContinued(by table: ImportPlan.Table) -> Bool {
            fingerprint == table.fingerprint
                || done < total && written != nil && written == table.written
        }
    }

    private static let tablesScript = [
        """
        CREATE TABLE IF NOT EXISTS martlet_import_tables(
            type TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, done INTEGER NOT NULL,
            total INTEGER NOT NULL) WITHOUT ROWID
        """,
        """
        CREATE TABLE IF NOT EXISTS martlet_import_ids(
            type TEXT NOT NULL, given NOT NULL, id NOT NULL, PRIMARY KEY (type, given))
            WITHOUT ROWID
        """,
        """
        CREATE TABLE IF NOT EXISTS martlet_import_later(
            n INTEGER PRIMARY KEY, type TEXT NOT NULL, id NOT NULL, attribute TEXT NOT NULL,
            target TEXT NOT NULL, given NOT NULL)
        """,
        """
        CREATE TABLE IF NOT EXISTS martlet_import_written(
            type TEXT PRIMARY KEY, fingerprint TEXT NOT NULL) WITHOUT ROWID
        """,
    ]

    func prepare() async throws {
        try await client.write { context in
            for statement in Self.tablesScript { try context.rows(statement) }
        }
    }

    /// Forgets the imports of some types. The records stay.
    func forget(_ types: [String]) async throws {
        try await client.write { context in
            for type in types {
                for table in ["tables", "ids", "written"] {
                    try context.rows(
                        "DELETE FROM martlet_import_\(table) WHERE type = ?", [.text(type)])
                }
            }
        }
    }

    func tables() async throws -> [String: Table] {
        let rows = try await client.read { context in
            try context.rows(
                """
                SELECT type, tables.fingerprint, done, total, written.fingerprint
                FROM martlet_import_tables AS tables LEFT JOIN martlet_import_written AS written USING (type)
                """)
        }
        var result: [String: Table] = [:]
        for row in rows {
            guard case .text(let type) = row.values[0], case .text(let hash) = row.values[1],
                case .integer(let done) = row.values[2], case .integer(let total) = row.values[3]
            else { continue }
            var written: String?
            if case .text(let hash) = row.values[4] { written = hash }
            result[type] = Table(
                fingerprint: hash, done: Int(done), total: Int(total), written: written)
        }
        return result
    }

    /// Returns the new id of each given id, for every type that others refer to.
    func maps(_ schema: Schema) async throws -> [String: [RecordID: RecordID]] {
        let targets = Set(schema.types.flatMap { $0.references.map(\.target) })
        var result: [String: [RecordID: RecordID]] = [:]
        for target in targets {
            guard let type = schema[target] else { continue }
            let rows = try await client.read { context in
                try context.rows(
                    "SELECT given, id FROM martlet_import_ids WHERE type = ?", [.text(target)])
            }
            var map: [RecordID: RecordID] = [:]
            for row in rows {
                // Files of an older version noted text keys that have only digits as integers.
                guard let noted = RecordID(row.values[0]), let id = RecordID(row.values[1]),
                    let given = type.givenID(noted.value)
                else { continue }
                map[given] = id
            }
            result[target] = map
        }
        return result
    }
}
