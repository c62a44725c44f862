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
    private let names: TableNames?

    /// Makes a staging of the database at an address.
    /// - Parameters:
    ///   - names: The names that it checks; nil if there are no policies.
    ///   - unsendable: Receives the rows that are left out.
    ///   - now: Returns the milliseconds since 1970.
    package init(
        _ address: PostgresAddress, checking names: TableNames? = nil, unsendable: UnsendableRows,
        now: @escaping () -> Int64
    ) {
        self.names = names
        moment = StagingMoment(address: address, unsendable: unsendable, now: now)
    }

    /// Writes the file, in place of an existing one.
    /// - Parameters:
    ///   - schema: The fingerprint that the tables must have; nil for any.
    ///   - view: The view whose records alone are written, with its members, and a function that brings it
    ///     up to the log's end and runs another before the log goes on; nil for all records.
    ///   - isWanted: Called repeatedly. When it returns false, writing ends with an error.
    /// - Returns: The end of the log at that moment.
    /// - Throws: `StorageFault`, `AdoptionError`, `PostgresError` or `SQLiteError`. The file is
    ///   then removed if possible.
    package func write(
        to path: String, schema fingerprint: String? = nil,
        of view: (number: Int64, reading: ConsistentReading)? = nil,
        while isWanted: () -> Bool = { true }
    ) throws -> LogHead {
        try write(to: path, fingerprint, isWanted, view, tries: StagingMoment.tries)
    }

    /// Writes the file.
    /// - Parameter tries: The number of tries without locks; see `StagingMoment`.
    func write(
        to path: String, _ fingerprint: String?, _ isWanted: () -> Bool,
        _ view: (number: Int64, reading: ConsistentReading)? = nil, tries: Int
    ) throws -> LogHead {
        let (reader, schema) = try moment.open(fingerprint, tries: tries, by: view?.reading)
        defer { reader.close() }
        try DatabaseFile.remove(path)
        do {
            let file = try Connection(path: path)
            // The file is useless after a crash, so it needs no journal.
            try file.execute(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF")
            try file.begin()
            let head = try writeDataSet(reader, file, schema)
            let parts = try view.map { try writeView($0.number, reader, file, schema) }
            // A file that is still empty does not exist, and would not be removed.
            try file.commit()
            try file.begin()
            for position in schema.tables.indices {
                try writeRows(position, parts?[position], reader, file, schema, isWanted)
            }
            try file.commit()
            try reader.end(checking: names)
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

    /// Stores the number of a view, and the revision up to which its members are known.
    ///
    /// - Returns: Its parts, in the order of the tables.
    private func writeView(
        _ number: Int64, _ reader: PostgresConnection, _ file: Connection,
        _ schema: PostgresSchema
    ) throws -> [Int64] {
        let views = try reader.query(
            "SELECT parts FROM _martlet.views WHERE number = $1", [.integer(number)])
        guard views.count == 1 else {
            throw StorageFault(.failed, "the storage has no view of the number \(number)")
        }
        let text = try views.text(0, 0)
        let put = try file.prepare("INSERT INTO martlet_views (number, parts) VALUES (?1, ?2)")
        put.bind(1, integer: number)
        put.bind(2, text: text)
        try put.run()
        let parts = ViewScan.parts(text, of: schema.tables.map(\.number))
        let note = try file.prepare(
            "INSERT INTO martlet_type_views (number, type, key, revision) VALUES (?1, ?2, ?3, ?4)")
        for (table, part) in zip(schema.tables, parts) where part > View.whole {
            let known = try reader.query(
                "SELECT key, revision FROM _martlet.type_views WHERE number = $1", [.integer(part)])
            note.rewind()
            note.bind(1, integer: part)
            note.bind(2, integer: table.number)
            note.bind(3, blob: try known.binary(0, 0))
            note.bind(4, integer: try known.integer(0, 1))
            try note.run()
        }
        return parts
    }

    /// - Parameter part: The part of a view for the type; nil for all records.
    private func writeRows(
        _ position: Int, _ part: Int64?, _ reader: PostgresConnection, _ file: Connection,
        _ schema: PostgresSchema, _ isWanted: () -> Bool
    ) throws {
        guard part != View.nothing else { return }
        let table = schema.tables[position]
        let isMember = part.flatMap { part in
            part == View.whole
                ? nil
                : """
                EXISTS (SELECT 1 FROM _martlet.members AS m \
                WHERE m.view = \(part) AND m.id = r.id AND m.shown)
                """
        }
        let member = try file.prepare(
            "INSERT INTO martlet_members VALUES (\(part ?? 0), ?1, 0, 0, 1)")
        let records = RecordTable(type: table.type, connection: file)
        let marks = try file.prepare(
            "INSERT INTO martlet_records VALUES (\(table.number), ?1, ?2, ?3, ?4, 0)")
        var count = 0
        try TableRows(table, on: reader).forEachMarked(
            where: isMember ?? "true",
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
                guard isMember != nil else { return }
                member.rewind()
                member.bind(1, id)
                try member.run()
            })
    }
}
