internal import MartletModel
package import SQLiteKit

/// What a snapshot file is: a SQLite database with the app's tables and their rows, without
/// secondary indexes, views and triggers, and three tables of Martlet's own.
///
/// `martlet_types` and `martlet_records` are as a device has them; `martlet_snapshot` says what the
/// file is a snapshot of. All parts of a snapshot have all tables; those whose records belong to
/// other parts are empty.
package enum SnapshotFormat {
    /// Raised with every change that a reader of this form would misunderstand.
    package static let number: Int64 = 1
    /// Stands in the file's header (`PRAGMA application_id`): “Mrtl”.
    package static let applicationID: Int64 = 0x4D72_746C
    /// Names a part may have, for files and addresses.
    package static let longestPartName = 64

    static let metaTable = "martlet_snapshot"
    /// Martlet's own tables: name, and what stands in the parentheses and after them.
    static let tables: [(name: String, declaration: String)] = [
        (metaTable, "(name TEXT PRIMARY KEY, value) WITHOUT ROWID"),
        ("martlet_types", "(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)"),
        (
            "martlet_records",
            "(type INTEGER NOT NULL, id NOT NULL, revision INTEGER NOT NULL,"
                + " PRIMARY KEY (type, id)) WITHOUT ROWID"
        ),
    ]

    /// Names in `martlet_snapshot`; every one is there exactly once.
    enum Key: String, CaseIterable {
        /// `number`.
        case format
        /// The data set's identity.
        case dataSet
        /// The revision at which all rows were read.
        case revision
        /// The chained hash of the log's entry of that revision.
        case lineage
        /// The schema's fingerprint.
        case schema
        /// The part this file is.
        case part
        /// All parts of the snapshot, the first to fetch first, one a line.
        case parts
    }

    /// Where `martlet_snapshot` has the number of a type's records in this part.
    static func countKey(_ type: String) -> String { "records of \(type)" }

    /// Where `martlet_snapshot` has the sum of the hashes of a type's records (`RowHasher`), as a
    /// signed number of the same bits.
    static func hashKey(_ type: String) -> String { "hash of \(type)" }

    /// Whether a part may have this name: 1 to 64 of a–z, 0–9, “_” and “-”.
    package static func isPartName(_ name: String) -> Bool {
        (1...longestPartName).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                (97...122).contains(byte) || (48...57).contains(byte) || byte == 95 || byte == 45
            }
    }

    /// Makes Martlet's own tables.
    /// - Parameter database: The attached database they are made in.
    package static func createTables(
        on connection: Connection, in database: String
    ) throws(SQLiteError) {
        for table in tables {
            try connection.execute(
                "CREATE TABLE \(SQLName.quoted(database)).\(table.name) \(table.declaration)")
        }
        try connection.execute(
            "PRAGMA \(SQLName.quoted(database)).application_id = \(applicationID)")
    }

    /// Writes what the file is a snapshot of.
    /// - Parameter database: The attached database it is written to.
    package static func write(
        _ description: SnapshotDescription, on connection: Connection, in database: String
    ) throws(SQLiteError) {
        let insert = try connection.prepare(
            "INSERT INTO \(SQLName.quoted(database)).\(metaTable) VALUES (?1, ?2)")
        func put(_ name: String, _ bind: () -> Void) throws(SQLiteError) {
            insert.bind(1, text: name)
            bind()
            try insert.run()
        }
        func put(_ key: Key, _ text: String) throws(SQLiteError) {
            try put(key.rawValue) { insert.bind(2, text: text) }
        }
        func put(_ name: String, _ number: Int64) throws(SQLiteError) {
            try put(name) { insert.bind(2, integer: number) }
        }
        try put(Key.format.rawValue, number)
        try put(Key.revision.rawValue, description.revision)
        try put(.dataSet, description.dataSet)
        try put(.lineage, description.lineage)
        try put(.schema, description.schema)
        try put(.part, description.part)
        try put(.parts, description.parts.joined(separator: "\n"))
        for type in description.types {
            try put(countKey(type.name), type.hash.count)
            try put(hashKey(type.name), Int64(bitPattern: type.hash.sum))
        }
    }
}
