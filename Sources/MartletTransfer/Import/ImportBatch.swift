import MartletModel
import MartletStore
import Synchronization

/// The records of one change set of an import.
struct ImportBatch: Sendable {
    let table: ImportPlan.Table
    let columns: [ImportColumn]
    let rows: [[Value]]
    /// The number of the source's records that are written once this batch is.
    let done: Int
    /// A hash of these records.
    let written: String
    /// The types whose records were or will be imported.
    let sourced: Set<String>
    let schema: Schema
    private let ids = WrittenIDs()

    /// The ids of the rows, in their order, as far as they were written.
    private final class WrittenIDs: Sendable {
        let list = Mutex<[RecordID]>([])
    }

    /// Returns the position of the row that an error of the write is about; nil if it is not about one.
    func row(refusedBy error: StoreError) -> Int? {
        let ids = ids.list.withLock(\.self)
        guard ids.count == rows.count else { return ids.count }
        guard error.table == table.type.name, let key = error.key else { return nil }
        return ids.firstIndex(of: key)
    }

    /// Writes the records, their new ids and the progress of the source.
    /// - Returns: The new id for each given id.
    func write(
        _ context: WriteContext, maps: [String: [RecordID: RecordID]]
    ) throws -> [(given: RecordID, id: RecordID)] {
        var made: [(given: RecordID, id: RecordID)] = []
        made.reserveCapacity(rows.count)
        var own: [RecordID: RecordID] = [:]
        for row in rows {
            let (values, given, later) = try values(of: row, context, maps, own)
            var key: String?
            if table.type.keyKind == .text, let given { key = given.description }
            let id = try context.insert(table.type.name, values, id: key)
            // Other records would refer to a missing record.
            guard id != .integer(0) else { throw Self.passedOver(table.type.name) }
            ids.list.withLock { $0.append(id) }
            if let given {
                own[given] = id
                made.append((given, id))
                try note(given, id, context)
            }
            for (attribute, target, given) in later {
                try context.rows(
                    """
                    INSERT INTO martlet_import_later(type, id, attribute, target, given)
                    VALUES (?, ?, ?, ?, ?)
                    """,
                    [
                        .text(table.type.name), id.sqlValue, .text(attribute), .text(target),
                        given.sqlValue,
                    ])
            }
        }
        try context.rows(
            """
            INSERT INTO martlet_import_tables(type, fingerprint, done, total) VALUES (?, ?, ?, ?)
            ON CONFLICT(type) DO UPDATE SET fingerprint = excluded.fingerprint,
                done = excluded.done, total = excluded.total
            """,
            [
                .text(table.type.name), .text(table.fingerprint), .integer(Int64(done)),
                .integer(Int64(table.recordCount)),
            ])
        try context.rows(
            "INSERT OR REPLACE INTO martlet_import_written(type, fingerprint) VALUES (?, ?)",
            [.text(table.type.name), .text(written)])
        return made
    }

    /// - Throws: `TransferError` if another import has imported the record meanwhile, because this
    ///   import has read the state only when it began.
    private func note(_ given: RecordID, _ id: RecordID, _ context: WriteContext) throws {
        do {
            try context.rows(
                "INSERT INTO martlet_import_ids(type, given, id) VALUES (?, ?, ?)",
                [.text(table.type.name), given.sqlValue, id.sqlValue])
        } catch let error as StoreError where error.kind == .constraint {
            throw TransferError(
                "Another import into this file has imported records of \(table.type.name) since this"
                    + " one began. Wait until it is done, and run this one again: it goes on from there."
            )
        }
    }

    private typealias Scheduler = (attribute: String, target: String, given: RecordID)

    private func values(
        of row: [Value], _ context: WriteContext, _ maps: [String: [RecordID: RecordID]],
        _ own: [RecordID: RecordID]
    ) throws -> (RecordValues, given: RecordID?, [Scheduler]) {
        var names: [String] = []
        var values: [SQLValue] = []
        names.reserveCapacity(row.count)
        values.reserveCapacity(row.count)
        var given: RecordID?
        var later: [Scheduler] = []
        for (column, value) in zip(columns, row) {
            switch column {
            case .key:
                given = table.type.givenID(value)
                continue
            case .attribute(let attribute):
                // A required attribute with a default gets the default if the source has no value.
                if value == .null, attribute.isRequired, attribute.hasDefault { continue }
                names.append(attribute.name)
                values.append(SQLValue(value, kind: attribute.kind))
            case .reference(let attribute, let reference):
                names.append(attribute.name)
                guard let id = (schema[reference.target] ?? table.type).givenID(value) else {
                    values.append(.null)
                    continue
                }
                let found =
                    maps[reference.target]?[id]
                    ?? (reference.target == table.type.name ? own[id] : nil)
                if let found {
                    values.append(try context.currentID(reference.target, found).sqlValue)
                } else if !sourced.contains(reference.target) {
                    // No record of that type is imported, so the value is a record's own id.
                    values.append(id.sqlValue)
                } else {
                    values.append(.null)
                    later.append((attribute.name, reference.target, id))
                }
            }
        }
        return (RecordValues(names: names, values: values), given, later)
    }

    private static func passedOver(_ type: String) -> StoreError {
        StoreError(
            .constraint,
            "SQLite passed a record of \(type) over, as a constraint (ON CONFLICT IGNORE) or a trigger of"
                + " the table says.")
    }

    /// Fills in up to `count` references whose records exist by now.
    /// - Returns: The number of references filled in.
    static func fillReferences(
        _ context: WriteContext, count: Int, maps: [String: [RecordID: RecordID]], schema: Schema
    ) throws -> Int {
        let waiting = try context.rows(
            """
            SELECT n, type, id, attribute, target, given FROM martlet_import_later
            ORDER BY n LIMIT ?
            """, [.integer(Int64(count))])
        for row in waiting {
            guard case .text(let type) = row.values[1], let id = RecordID(row.values[2]),
                case .text(let attribute) = row.values[3], case .text(let target) = row.values[4],
                let noted = RecordID(row.values[5]),
                let given = schema[target]?.givenID(noted.value), let found = maps[target]?[given]
            else {
                throw TransferError(
                    "The import's own notes in the file are damaged. Import into a new file.")
            }
            let value = try context.currentID(target, found).sqlValue
            let update = RecordValues(names: [attribute], values: [value])
            // A record that was deleted meanwhile needs no reference.
            guard try context.update(type, id, update) || context.record(type, id) == nil else {
                throw passedOver(type)
            }
            try context.rows("DELETE FROM martlet_import_later WHERE n = ?", [row.values[0]])
        }
        return waiting.count
    }
}
