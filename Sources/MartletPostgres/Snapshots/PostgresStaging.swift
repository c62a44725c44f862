internal import MartletEmbedded
import MartletModel
package import MartletServerCore
package import PostgresKit
import SQLiteKit
import SQLiteRecords

/// Writes a data set as of one moment into a SQLite file with the layout of an embedded server's,
/// without the log. `SnapshotMaker` makes snapshots of this file.
///
/// It copies rows page by page, so memory does not grow with the data set.
package struct PostgresStaging {
    private let moment: StagingMoment

    /// Makes a staging of the database at an address.
    /// - Parameters:
    ///   - unsendable: Receives the rows that are left out.
    ///   - now: Returns the milliseconds since 1970.
    package init(
        _ address: PostgresAddress, unsendable: UnsendableRows, now: @escaping () -> Int64
    ) {
        moment = StagingMoment(address: address, unsendable: unsendable, now: now)
    }

    /// Writes the file, in place of an existing one.
    /// - Parameters:
    ///   - schema: The fingerprint that the tables must have; nil for any.
    ///   - isWanted: Called repeatedly. When it returns false, writing ends with an error.
    /// - Returns: The end of the log at that moment.
    /// - Throws: `StorageFault`, `AdoptionError`, `PostgresError` or `SQLiteError`. The file is
    ///   then removed if possible.
    package func write(
        to path: String, schema fingerprint: String? = nil, while isWanted: () -> Bool = { true }
    ) throws -> LogHead {
        try write(to: path, fingerprint, isWanted, tries: StagingMoment.tries)
    }

    /// Writes the file.
    /// - Parameter tries: The number of tries without locks; see `StagingMoment`.
    func write(
        to path: String, _ fingerprint: String?, _ isWanted: () -> Bool, tries: Int
    ) throws -> LogHead {
        let (reader, schema) = try moment.open(fingerprint, tries: tries)
        defer { reader.close() }
        try DatabaseFile.remove(path)
        do {
            let file = try Connection(path: path)
            // The file is useless after a crash, so it needs no journal.
            try file.execute(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF")
            try file.begin()
            let head = try writeDataSet(reader, file, schema)
            // A file that is still empty does not exist, and would not be removed.
            try file.commit()
            try file.begin()
            for position in schema.tables.indices {
                try writeRows(position, reader, file, schema, isWanted)
            }
            try file.commit()
            return head
        } catch {
            try? DatabaseFile.remove(path)
            throw error
        }
    }

    /// Makes the tables, and stores the data set's identity and head.
    private func writeDataSet(
        _ reader: PostgresConnection, _ file: Connection, _ schema: PostgresSchema
    ) throws -> LogHead {
        let rows = try reader.query("SELECT identity, revision, hash, floor FROM _martlet.dataset")
        let head = LogHead(
            revision: try rows.integer(0, 1), hash: LineageHash(stored: try rows.binary(0, 2)))
        try file.execute(schema.deviceScript)
        try EmbeddedTables.create(in: file)
        try file.run("INSERT INTO martlet_meta VALUES ('format', \(EmbeddedTables.format))")
        try file.run("INSERT INTO martlet_meta VALUES ('floor', \(try rows.integer(0, 3)))")
        let dataSet = try file.prepare(
            """
            INSERT INTO martlet_dataset (number, identity, revision, hash) VALUES (1, ?1, ?2, ?3)
            """)
        dataSet.bind(1, text: try rows.text(0, 0))
        dataSet.bind(2, integer: head.revision)
        dataSet.bind(3, blob: head.hash.bytes)
        try dataSet.run()
        for table in schema.tables {
            // PostgreSQL assigns keys, so this file never does.
            let type = try file.prepare("INSERT INTO martlet_types VALUES (?1, ?2, 1)")
            type.bind(1, integer: table.number)
            type.bind(2, text: table.type.name)
            try type.run()
        }
        return head
    }

    private func writeRows(
        _ position: Int, _ reader: PostgresConnection, _ file: Connection,
        _ schema: PostgresSchema, _ isWanted: () -> Bool
    ) throws {
        let table = schema.tables[position]
        let records = RecordTable(type: table.type, connection: file)
        let marks = try file.prepare(
            "INSERT INTO martlet_records VALUES (\(table.number), ?1, ?2, ?3, ?4, 0)")
        var count = 0
        try TableRows(table, on: reader).forEachMarked(
            unsendable: { id, value in
                moment.unsendable.note(table.type.name, id, value.reason)
            },
            { id, row, mark in
                count += 1
                if count % 1_000 == 0, !isWanted() {
                    throw StorageFault(.failed, "the snapshot is no longer wanted")
                }
                try records.insert(id, row, absentMeansNull: true)
                defer { marks.reset() }
                marks.rewind()
                marks.bind(1, id)
                marks.bind(2, integer: mark.revision)
                marks.bind(3, integer: mark.author)
                marks.bind(4, integer: mark.others)
                while try marks.step() {}
            })
    }
}
