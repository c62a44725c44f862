internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Own change sets not yet confirmed, in the order in which they were made.
///
/// A set that was never sent is kept as its changes alone and may still be rewritten. When it is
/// first sent its bytes are frozen beside them, and every later try sends the same bytes.
struct Outbox {
    let store: LocalStore

    /// Records of one set made of what foreign connections wrote.
    static let foreignSetRecords = 5_000
    /// Bytes a change costs beyond its attributes.
    private static let bytesPerChange = 64

    /// Puts one set at the end of the queue, with the base images of its records.
    /// - Throws: `StoreError` `.tooLarge` when the set could never be sent.
    func enqueue(_ changes: [RecordChange], identifier: String, now: Int64) throws {
        let sequence = try store.integerState("nextSequence") ?? 1
        var bytes = 0
        for change in changes {
            bytes += try insert(change, sequence: sequence)
        }
        guard changes.count <= Limits.recordsPerChangeSet, bytes <= Limits.changeSetBytes else {
            throw StoreError(
                .tooLarge,
                "The transaction changes \(changes.count) records, about \(bytes >> 10) KiB. At"
                    + " most \(Limits.recordsPerChangeSet) records and"
                    + " \(Limits.changeSetBytes >> 10) KiB can be sent as one change set; write it"
                    + " in smaller transactions.")
        }
        try insertRow(
            sequence: sequence, identifier: identifier, records: changes.count, bytes: bytes,
            now: now)
        try store.setState("nextSequence", .integer(sequence + 1))
    }

    private func insertRow(
        sequence: Int64, identifier: String, records: Int, bytes: Int, now: Int64
    ) throws {
        let row = try store.connection.statement(
            """
            INSERT INTO martlet_outbox(sequence, identifier, seen, timestamp, records, bytes)
            VALUES (?, ?, ?, ?, ?, ?)
            """)
        row.bind(1, integer: sequence)
        row.bind(2, text: identifier)
        row.bind(3, integer: try store.integerState("revision") ?? 0)
        row.bind(4, text: Timestamp.rfc3339(milliseconds: now))
        row.bind(5, integer: Int64(records))
        row.bind(6, integer: Int64(bytes))
        try row.run()
    }

    /// Stores one change; returns about how many bytes it takes on the wire.
    private func insert(_ change: RecordChange, sequence: Int64) throws -> Int {
        let number = store.numbers[change.type]
        let base = try keepBase(change, number: number)
        var after: [UInt8]?
        if change.operation != .delete {
            after = try encoded(change.after, type: change.type)
            try noteReferences(of: change.after, type: change.type, sequence: sequence)
        }
        try insertChange(
            StoredChange(
                type: change.type, id: change.id, operation: change.operation,
                baseRevision: base.revision, base: base.image, after: after), sequence: sequence)
        return (after?.count ?? 0) + Self.bytesPerChange
    }

    /// Notes which temporary ids a set refers to, so that it is found when they become permanent.
    func noteReferences(of attributes: Attributes, type: Int, sequence: Int64) throws {
        for reference in store.schema.types[type].references {
            guard case .integer(let number)? = attributes[reference.attribute], number < 0,
                let target = store.schema.index(of: reference.target)
            else { continue }
            let row = try store.connection.statement(
                "INSERT OR IGNORE INTO martlet_references VALUES (?, ?, ?)")
            row.bind(1, integer: store.numbers[target])
            row.bind(2, integer: number)
            row.bind(3, integer: sequence)
            try row.run()
        }
    }

    /// Adds one change to a set, in the caller's transaction.
    func insertChange(_ change: StoredChange, sequence: Int64) throws {
        let row = try store.connection.statement(
            """
            INSERT INTO martlet_changes(
                sequence, type, id, operation, base_revision, base, after)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """)
        row.bind(1, integer: sequence)
        row.bind(2, integer: store.numbers[change.type])
        row.bind(3, change.id)
        row.bind(4, integer: change.operation.rawValue)
        row.bind(5, integer: change.baseRevision)
        if let base = change.base { row.bind(6, blob: base) } else { row.bindNull(6) }
        if let after = change.after { row.bind(7, blob: after) } else { row.bindNull(7) }
        try row.run()
    }

    /// The confirmed image of a record with unconfirmed edits; kept at its first edit.
    private func keepBase(
        _ change: RecordChange, number: Int64
    ) throws -> (revision: Revision, image: [UInt8]?) {
        if let known = try base(number, change.id) { return known }
        var image: [UInt8]?
        if let before = change.before {
            image = try encoded(before.withoutNulls(), type: change.type)
        }
        let revision = try confirmedRevision(number, change.id) ?? 0
        try insertBase(number, change.id, revision: revision, image: image)
        return (revision, image)
    }

    func base(_ number: Int64, _ id: RecordID) throws -> (revision: Revision, image: [UInt8]?)? {
        let find = try store.connection.statement(
            "SELECT revision, image FROM martlet_base WHERE type = ? AND id = ?")
        find.bind(1, integer: number)
        find.bind(2, id)
        defer { find.reset() }
        guard try find.step() else { return nil }
        return (find.integer(0), find.isNull(1) ? nil : find.blob(1))
    }

    func insertBase(
        _ number: Int64, _ id: RecordID, revision: Revision, image: [UInt8]?
    ) throws {
        let row = try store.connection.statement(
            "INSERT INTO martlet_base(type, id, revision, image) VALUES (?, ?, ?, ?)")
        row.bind(1, integer: number)
        row.bind(2, id)
        row.bind(3, integer: revision)
        if let image { row.bind(4, blob: image) } else { row.bindNull(4) }
        try row.run()
    }

    /// The revision at which a record last changed, as far as this device knows.
    func confirmedRevision(_ number: Int64, _ id: RecordID) throws -> Revision? {
        let find = try store.connection.statement(
            "SELECT revision FROM martlet_records WHERE type = ? AND id = ?")
        find.bind(1, integer: number)
        find.bind(2, id)
        defer { find.reset() }
        return try find.step() ? find.integer(0) : nil
    }

    private func encoded(_ attributes: Attributes, type: Int) throws -> [UInt8] {
        do {
            return try SyncCoder.encode(attributes)
        } catch {
            throw StoreError(
                .value,
                "A record of \(store.schema.types[type].name) cannot be sent:"
                    + " \(error.message).")
        }
    }
}

/// One record's part of a stored change set.
struct StoredChange {
    let type: Int
    var id: RecordID
    let operation: RecordChange.Operation
    var baseRevision: Revision
    let base: [UInt8]?
    var after: [UInt8]?
}

/// One row of the queue.
struct QueuedSet {
    let sequence: Int64
    let identifier: String
    let isSent: Bool
    let isApplied: Bool
}

// MARK: - Reading the queue

extension Outbox {
    /// All sets, oldest first.
    func queued() throws -> [QueuedSet] {
        let rows = try store.connection.statement(
            "SELECT sequence, identifier, sent, applied FROM martlet_outbox ORDER BY sequence")
        defer { rows.reset() }
        var sets: [QueuedSet] = []
        while try rows.step() {
            sets.append(
                QueuedSet(
                    sequence: rows.integer(0), identifier: rows.text(1),
                    isSent: rows.integer(2) != 0, isApplied: rows.integer(3) != 0))
        }
        return sets
    }

    /// A set's changes: in the order of types, and in each type the newest temporary id last.
    func changes(of sequence: Int64, in table: String = "martlet_changes") throws -> [StoredChange]
    {
        let rows = try store.connection.statement(
            """
            SELECT type, id, operation, base_revision, base, after FROM \(table)
            WHERE sequence = ? ORDER BY type, operation,
                CASE WHEN typeof(id) = 'integer' AND id < 0 THEN -id ELSE id END
            """)
        rows.bind(1, integer: sequence)
        defer { rows.reset() }
        var changes: [StoredChange] = []
        while try rows.step() {
            guard let type = store.index(ofNumber: rows.integer(0)),
                let operation = RecordChange.Operation(rawValue: rows.integer(2))
            else { continue }
            changes.append(
                StoredChange(
                    type: type, id: try rows.recordID(1), operation: operation,
                    baseRevision: rows.integer(3), base: rows.isNull(4) ? nil : rows.blob(4),
                    after: rows.isNull(5) ? nil : rows.blob(5)))
        }
        return changes
    }

    /// Removes a set that was settled.
    func remove(_ sequence: Int64) throws {
        try clear(sequence)
        let row = try store.connection.statement("DELETE FROM martlet_outbox WHERE sequence = ?")
        row.bind(1, integer: sequence)
        try row.run()
    }

    /// Removes a set's changes and keeps its place in the queue.
    func clear(_ sequence: Int64) throws {
        for sql in [
            "DELETE FROM martlet_changes WHERE sequence = ?",
            "DELETE FROM martlet_references WHERE sequence = ?",
        ] {
            let statement = try store.connection.statement(sql)
            statement.bind(1, integer: sequence)
            try statement.run()
        }
    }
}

// MARK: - Sending

extension Outbox {
    /// The sets that go into the next request, as bytes; those never sent before are frozen now.
    ///
    /// Runs in the caller's transaction, which must be durable before the bytes leave.
    /// - Parameter byteLimit: Stop before this many bytes; one set always goes.
    func freeze(byteLimit: Int) throws -> [[UInt8]] {
        let rows = try store.connection.statement(
            """
            SELECT sequence, identifier, seen, timestamp, sent, frozen, bytes FROM martlet_outbox
            ORDER BY sequence LIMIT \(Limits.changeSetsPerRequest)
            """)
        defer { rows.reset() }
        var pieces: [[UInt8]] = []
        var fresh: [(sequence: Int64, bytes: [UInt8])] = []
        var total = 0
        while try rows.step() {
            let isSent = rows.integer(4) != 0
            if !pieces.isEmpty, total + Int(rows.integer(6)) > byteLimit { break }
            let bytes: [UInt8]
            if isSent {
                bytes = rows.blob(5)
            } else {
                bytes = try encode(
                    sequence: rows.integer(0), identifier: rows.text(1), seen: rows.integer(2),
                    timestamp: rows.text(3))
                fresh.append((rows.integer(0), bytes))
            }
            total += bytes.count
            pieces.append(bytes)
        }
        for (sequence, bytes) in fresh {
            let update = try store.connection.statement(
                "UPDATE martlet_outbox SET sent = 1, frozen = ?, bytes = ? WHERE sequence = ?")
            update.bind(1, blob: bytes)
            update.bind(2, integer: Int64(bytes.count))
            update.bind(3, integer: sequence)
            try update.run()
        }
        return pieces
    }

    private func encode(
        sequence: Int64, identifier: String, seen: Revision, timestamp: String
    ) throws -> [UInt8] {
        var set = ChangeSet()
        set.identifier = identifier
        set.sequence = sequence
        set.seen = seen
        set.timestamp = timestamp
        for change in try changes(of: sequence) {
            let name = store.schema.types[change.type].name
            if set.types.last?.name != name {
                set.types.append(TypeChanges(name: name))
            }
            let last = set.types.count - 1
            switch change.operation {
            case .create:
                set.types[last].create.append(change.id)
                set.types[last].entries.append(
                    RecordEntry(
                        id: change.id,
                        attributes: try SyncCoder.decodeAttributes(change.after ?? [])))
            case .update:
                set.types[last].update.append(change.id)
                set.types[last].entries.append(
                    RecordEntry(
                        id: change.id, revision: change.baseRevision,
                        attributes: try SyncCoder.decodeAttributes(change.after ?? [])))
            case .delete:
                set.types[last].delete.append(change.id)
                set.types[last].entries.append(
                    RecordEntry(id: change.id, revision: change.baseRevision))
            }
        }
        return try SyncCoder.encode(set)
    }

    /// Every set numbered up to this has been answered, and the answer stored.
    func acknowledged() throws -> Int64 {
        if let first = try store.connection.integer("SELECT min(sequence) FROM martlet_outbox") {
            return first - 1
        }
        return (try store.integerState("nextSequence") ?? 1) - 1
    }
}
