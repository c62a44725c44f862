internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The position at which hashing continues: a type, and a key in it.
struct CheckCursor: Sendable {
    var type = 0
    var from: RecordID?
}

/// Records hashed in one transaction.
struct HashedBatch: Sendable {
    let revision: Revision
    var records: [HashedRecords] = []
    /// The rows that are left out, because no set can carry their keys.
    var unreadable: [CheckReport.UnreadableRow] = []
    /// The position of the next batch; nil if this one is the last.
    var next: CheckCursor?
}

extension DeviceStore {
    /// Recreates triggers that are gone, and turns capture on if it is off.
    /// - Returns: Whether there was anything to do.
    func restoreCapture() throws -> Bool {
        try inApplyingTransaction { try applying.restoreCapture() }
    }

    /// Hashes the confirmed state of the device: the app's rows, with the base images of
    /// unconfirmed edits in their place, and the revisions that the device has stored. It leaves
    /// out records that the device created and that have no permanent id yet, but includes those
    /// whose creation was not captured.
    /// - Parameters:
    ///   - excluded: The attributes to leave out, by type.
    ///   - limit: The number of records in one batch. The user's writes wait while they are hashed.
    /// - Throws: `SyncError` `.busy` while a difference, a snapshot or part of one is under way.
    func hashConfirmed(
        from cursor: CheckCursor, without excluded: [String: Set<String>], limit: Int, now: Int64
    ) throws -> HashedBatch {
        try inApplyingTransaction {
            let standing = try standing
            guard !standing.isIncomplete else {
                throw SyncError(.busy, "The device is still fetching data; check when it is done.")
            }
            try closeExternalCapture(applying, now: now)
            var batch = HashedBatch(revision: standing.revision)
            var cursor = cursor
            var room = limit
            while cursor.type < applying.schema.types.count {
                let type = applying.schema.types[cursor.type]
                let hidden = excluded[type.name] ?? []
                let attributes = type.attributes.filter {
                    !$0.isGenerated && !hidden.contains($0.name)
                }
                var scan = ConfirmedScan(
                    store: applying, type: cursor.type, attributes: attributes, from: cursor.from)
                let records = try scan.records(limit: room)
                batch.records.append(records)
                batch.unreadable += scan.unreadable
                room -= records.ids.count
                cursor =
                    records.below.map { CheckCursor(type: cursor.type, from: $0) }
                    ?? CheckCursor(type: cursor.type + 1)
                // Rows that are not confirmed do not count. The rest of the type is still left to
                // another batch, because a request names each type once.
                guard room > 0, records.below == nil else { break }
            }
            batch.next = cursor.type < applying.schema.types.count ? cursor : nil
            return batch
        }
    }
}

/// Reads one type's rows, revisions and base images in step, in the order of their keys.
private struct ConfirmedScan {
    let store: LocalStore
    let type: Int
    let attributes: [Attribute]
    let from: RecordID?

    private(set) var unreadable: [CheckReport.UnreadableRow] = []

    private typealias Hashes = [(id: RecordID, hash: UInt64?)]

    init(store: LocalStore, type: Int, attributes: [Attribute], from: RecordID?) {
        self.store = store
        self.type = type
        self.attributes = attributes
        self.from = from
    }

    mutating func records(limit: Int) throws -> HashedRecords {
        let described = store.schema.types[type]
        var hasher = RowHasher(type: described, attributes: attributes)
        let (rows, below) = try rows(&hasher, limit: limit)
        let range = KeyRange(from: from, below: below)
        let marks = try marks(&hasher, range)
        let bases = try bases(&hasher, range)
        var records = HashedRecords(
            type: described, attributes: hasher.attributes, from: from, below: below,
            leftOut: try quarantined(described.name))
        var (row, mark, base) = (0, 0, 0)
        while true {
            var least: RecordID?
            func look(_ hashes: Hashes, _ position: Int) {
                guard position < hashes.count else { return }
                let id = hashes[position].id
                if least.map({ id < $0 }) ?? true { least = id }
            }
            look(rows, row)
            look(marks, mark)
            look(bases, base)
            guard let id = least else { break }
            var hash = RangeHash()
            var confirmed: UInt64?
            if row < rows.count, rows[row].id == id {
                confirmed = rows[row].hash
                row += 1
            }
            if base < bases.count, bases[base].id == id {
                confirmed = bases[base].hash
                base += 1
            }
            if let confirmed { hash.add(row: confirmed) }
            if mark < marks.count, marks[mark].id == id {
                if let revision = marks[mark].hash { hash.add(mark: revision) }
                mark += 1
            } else if confirmed == nil {
                continue
            }
            if !records.leftOut.contains(id) { records.append(id, hash) }
        }
        return records
    }

    private mutating func rows(
        _ hasher: inout RowHasher, limit: Int
    ) throws -> (Hashes, below: RecordID?) {
        let described = store.schema.types[type]
        let range = KeyRange(from: from, below: nil)
        let rows = try store.connection.statement(
            """
            SELECT \(hasher.columns) FROM \(SQLName.quoted(described.name))
            WHERE \(range.ordered(SQLName.quoted(described.key), described.keyKind))
            """)
        defer { rows.reset() }
        range.bind(to: rows)
        var hashes: Hashes = []
        while try rows.step() {
            guard let id = try readableID(rows, described) else { continue }
            guard try !id.isTemporary || isUnseen(id) else { continue }
            guard hashes.count < limit else { return (hashes, id) }
            hashes.append((id, hasher.hash(rows)))
        }
        return (hashes, nil)
    }

    /// Returns a row's key; nil if no set can carry it, which is then noted.
    private mutating func readableID(
        _ row: Statement, _ described: EntityType
    ) throws -> RecordID? {
        do {
            return try row.recordID(0)
        } catch {
            guard error.isMismatch else { throw error }
            let hex = row.blob(0).map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined()
            unreadable.append(
                CheckReport.UnreadableRow(type: described.name, key: hex, message: error.message))
            return nil
        }
    }

    /// Returns whether a row with a temporary id belongs to no queued record, because it was
    /// written past the triggers.
    private func isUnseen(_ id: RecordID) throws -> Bool {
        let find = try store.connection.statement(
            """
            SELECT NOT EXISTS (SELECT 1 FROM martlet_base WHERE type = ?1 AND id = ?2)
                AND NOT EXISTS (SELECT 1 FROM martlet_changes WHERE type = ?1 AND id = ?2)
            """)
        defer { find.reset() }
        find.bind(1, integer: store.numbers[type])
        find.bind(2, id)
        return try find.step() && find.integer(0) != 0
    }

    private func marks(_ hasher: inout RowHasher, _ range: KeyRange) throws -> Hashes {
        let marks = try store.connection.statement(
            """
            SELECT id, revision FROM martlet_records
            WHERE type = ?1 AND \(range.ordered("id", store.schema.types[type].keyKind))
            """)
        defer { marks.reset() }
        marks.bind(1, integer: store.numbers[type])
        range.bind(to: marks)
        var hashes: Hashes = []
        while try marks.step() {
            let id = try marks.recordID(0)
            hashes.append((id, hasher.mark(id, marks.integer(1))))
        }
        return hashes
    }

    private func bases(_ hasher: inout RowHasher, _ range: KeyRange) throws -> Hashes {
        let bases = try store.connection.statement(
            """
            SELECT id, image FROM martlet_base
            WHERE type = ?1 AND \(range.ordered("id", store.schema.types[type].keyKind))
            """)
        defer { bases.reset() }
        bases.bind(1, integer: store.numbers[type])
        range.bind(to: bases)
        var hashes: Hashes = []
        while try bases.step() {
            let id = try bases.recordID(0)
            guard !id.isTemporary else { continue }
            guard !bases.isNull(1) else {
                hashes.append((id, nil))
                continue
            }
            hashes.append((id, hasher.hash(id, try SyncCoder.decodeAttributes(bases.blob(1)))))
        }
        return hashes
    }

    private func quarantined(_ name: String) throws -> Set<RecordID> {
        let rows = try store.connection.statement(
            "SELECT id FROM martlet_quarantine WHERE type = ?1")
        defer { rows.reset() }
        rows.bind(1, text: name)
        var ids: Set<RecordID> = []
        while try rows.step() { ids.insert(try rows.recordID(0)) }
        return ids
    }
}
