internal import MartletModel
package import SQLiteKit

/// The format of a snapshot file: a SQLite database with the app's tables and their rows, without
/// secondary indexes, views and triggers, and with three tables of Martlet's own.
///
/// `martlet_types` and `martlet_records` are the same as on a device; `martlet_snapshot` describes
/// the snapshot. All parts of a snapshot have all tables. A table is empty if its records belong to
/// another part.
package enum SnapshotFormat {
    /// The number of the format. It is raised with every change that a reader of this format would
    /// misunderstand.
    package static let number: Int64 = 1
    /// The mark in the file's header (`PRAGMA application_id`): “Mrtl”.
    package static let applicationID: Int64 = 0x4D72_746C
    /// The longest name of a part, in bytes. The name is used in files and addresses.
    package static let longestPartName = 64

    static let metaTable = "martlet_snapshot"
    /// Martlet's own tables: the name, and the text from the parentheses on.
    static let tables: [(name: String, declaration: String)] = [
        (metaTable, "(name TEXT PRIMARY KEY, value) WITHOUT ROWID"),
        ("martlet_types", "(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)"),
        (
            "martlet_records",
            "(type INTEGER NOT NULL, id NOT NULL, revision INTEGER NOT NULL,"
                + " PRIMARY KEY (type, id)) WITHOUT ROWID"
        ),
    ]

    /// The names in `martlet_snapshot`, each of which occurs exactly once.
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
        /// The name of the part that this file is.
        case part
        /// All parts of the snapshot, the first to fetch first, one a line.
        case parts
    }

    /// Returns the name under which `martlet_snapshot` has the number of a type's records in this
    /// part.
    static func countKey(_ type: String) -> String { "records of \(type)" }

    /// Returns the name under which `martlet_snapshot` has the sum of the hashes of a type's
    /// records (`RowHasher`), as a signed number of the same bits.
    static func hashKey(_ type: String) -> String { "hash of \(type)" }

    /// Returns whether a part may have this name: 1 to 64 of a–z, 0–9, “_” and “-”.
    package static func isPartName(_ name: String) -> Bool {
        (1...longestPartName).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                (97...122).contains(byte) || (48...57).contains(byte) || byte == 95 || byte == 45
            }
    }

    /// Creates Martlet's own tables.
    /// - Parameter database: The name of the attached database in which they are created.
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

    /// Writes the description of the snapshot.
    /// - Parameter database: The name of the attached database to which it is written.
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
