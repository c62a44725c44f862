internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The own change sets that are not confirmed yet, in the order in which they were made.
///
/// A set that was never sent is stored as its changes alone and may still be rewritten. When it is
/// first sent, its bytes are frozen and stored with them. Every retry sends the same bytes.
struct Outbox {
    let store: LocalStore

    /// The bytes of a change in addition to its attributes and its key.
    private static let bytesPerChange = 64

    /// Puts one set at the end of the queue, with the base images of its records.
    /// - Throws: `StoreError` `.tooLarge` if the set could never be sent.
    func enqueue(_ changes: [RecordChange], identifier: String, now: Int64) throws {
        let deletes = changes.contains { $0.operation == .delete }
        try enqueue(changes.count, deletes: deletes, identifier: identifier, now: now) { sequence in
            try changes.reduce(0) { try $0 + insert($1, sequence: sequence) }
        }
    }

    /// Puts the changes of a refused set at the end of the queue again, as a new set. The base
    /// images of their records are stored already.
    func enqueue(remade changes: [StoredChange], identifier: String, now: Int64) throws {
        let deletes = changes.contains { $0.operation == .delete }
        try enqueue(changes.count, deletes: deletes, identifier: identifier, now: now) { sequence in
            for change in changes {
                try insertChange(change, sequence: sequence)
                try noteReferences(of: change, sequence: sequence)
            }
            return Self.bytes(of: changes)
        }
    }

    /// Puts a set at the end of the queue.
    /// - Parameters:
    ///   - deletes: Whether the set deletes a record.
    ///   - insert: Stores the changes under a sequence; returns about how many bytes they take on
    ///     the wire.
    private func enqueue(
        _ records: Int, deletes: Bool, identifier: String, now: Int64,
        _ insert: (Int64) throws -> Int
    ) throws {
        let sequence = try store.counter("nextSequence")
        let bytes = try insert(sequence)
        try checkSize(records: records, bytes: bytes)
        let all = try seen
        let seen = try !deletes || showsAll ? all : 0
        try insertRow(
            sequence: sequence, identifier: identifier, seen: seen, records: records,
            bytes: bytes, now: now)
        try store.setState("nextSequence", .integer(sequence + 1))
    }

    /// Checks that a set of this size can be sent.
    /// - Throws: `StoreError` `.tooLarge` if it never could.
    func checkSize(records: Int, bytes: Int) throws {
        guard records <= Limits.recordsPerChangeSet, bytes <= Limits.savedSetBytes else {
            throw StoreError(
                .tooLarge,
                "The transaction changes \(records) records, about \(bytes >> 10) KiB. At"
                    + " most \(Limits.recordsPerChangeSet) records and"
                    + " \(Limits.savedSetBytes >> 10) KiB can be sent as one change set; write it"
                    + " in smaller transactions.")
        }
    }

    /// Returns the approximate bytes that changes take on the wire.
    static func bytes(of changes: some Sequence<StoredChange>) -> Int {
        changes.reduce(0) { $0 + bytes($1.id, $1.after) }
    }

    private static func bytes(_ id: RecordID, _ after: [UInt8]?) -> Int {
        // A text key is written in a list and with the attributes.
        let key = if case .text = id { 2 * id.wireByteCount } else { 0 }
        return (after?.count ?? 0) + key + bytesPerChange
    }

    /// Returns the approximate bytes on the wire of a change that is not queued yet.
    func bytes(of change: RecordChange) throws -> Int {
        let isDelete = change.operation == .delete
        return Self.bytes(
            change.id, isDelete ? nil : try encoded(change.after, type: change.type))
    }

    private func insertRow(
        sequence: Int64, identifier: String, seen: Revision, records: Int, bytes: Int, now: Int64
    ) throws {
        let row = try store.connection.statement(
            """
            INSERT INTO martlet_outbox(sequence, identifier, seen, timestamp, records, bytes)
            VALUES (?, ?, ?, ?, ?, ?)
            """)
        row.bind(1, integer: sequence)
        row.bind(2, text: identifier)
        row.bind(3, integer: seen)
        row.bind(4, text: Timestamp.rfc3339(milliseconds: now))
        row.bind(5, integer: Int64(records))
        row.bind(6, integer: Int64(bytes))
        try row.run()
        if try seen < store.counter("revision") { try noteBasis(of: sequence) }
        try noteLineage()
    }

    /// Stores one change, and returns the approximate bytes that it takes on the wire.
    private func insert(_ change: RecordChange, sequence: Int64) throws -> Int {
        let number = store.numbers[change.type]
        let base = try keepBase(change, number: number)
        var after: [UInt8]?
        if change.operation != .delete {
            after = try encoded(change.after, type: change.type)
            try noteReferences(of: change.after, type: change.type, sequence: sequence)
        }
        let revision = try change.base ?? min(base.revision, waitingBase(of: change) ?? .max)
        try insertChange(
            StoredChange(
                number: number, type: change.type, id: change.id, operation: change.operation,
                baseRevision: revision, base: base.image, after: after),
            sequence: sequence)
        return Self.bytes(change.id, after)
    }

    /// Returns the base revision of the newest queued edit of the record that the tables show; nil
    /// if there is none. While that edit waits for its verdict, newer changes by other devices are
    /// applied under it, and the user does not see them.
    private func waitingBase(of change: RecordChange) throws -> Revision? {
        let find = try store.connection.statement(
            """
            SELECT base_revision FROM martlet_changes JOIN martlet_outbox USING (sequence)
            WHERE type = ? AND id = ? AND applied = 1 ORDER BY sequence DESC LIMIT 1
            """)
        find.bind(1, integer: store.numbers[change.type])
        find.bind(2, change.id)
        defer { find.reset() }
        return try find.step() ? find.integer(0) : nil
    }

    /// Notes the temporary ids to which a stored change refers.
    func noteReferences(of change: StoredChange, sequence: Int64) throws {
        guard let type = change.type, !store.schema.types[type].references.isEmpty else { return }
        try noteReferences(of: change.attributes(), type: type, sequence: sequence)
    }

    /// Notes the temporary ids to which a set refers, so that the set is found when they become
    /// permanent.
    private func noteReferences(of attributes: Attributes, type: Int, sequence: Int64) throws {
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
    func insertChange(
        _ change: StoredChange, sequence: Int64, in table: String = "martlet_changes"
    ) throws {
        let row = try store.connection.statement(
            """
            INSERT INTO \(table)(
                sequence, type, id, operation, base_revision, base, after)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """)
        row.bind(1, integer: sequence)
        row.bind(2, integer: change.number)
        row.bind(3, change.id)
        row.bind(4, integer: change.operation.rawValue)
        row.bind(5, integer: change.baseRevision)
        if let base = change.base { row.bind(6, blob: base) } else { row.bindNull(6) }
        if let after = change.after { row.bind(7, blob: after) } else { row.bindNull(7) }
        try row.run()
    }

    /// Returns the confirmed image of a record with unconfirmed edits. It is stored at the first
    /// edit.
    private func keepBase(
        _ change: RecordChange, number: Int64
    ) throws -> (revision: Revision, image: [UInt8]?) {
        if let known = try base(number, change.id) { return known }
        var image: [UInt8]?
        if let before = change.before {
            image = try encoded(before.withoutNulls(), type: change.type)
        }
        let revision = try confirmedRevision(number, change.id) ?? seen(byMaking: change)
        try insertBase(number, change.id, revision: revision, image: image)
        return (revision, image)
    }

    /// Returns the revision that edits of a new record are based on until the server has confirmed
    /// its creation. For a text key this is everything that the device had seen by then, because an
    /// earlier record may have had the same key; it is 0 otherwise.
    private func seen(byMaking change: RecordChange) throws -> Revision {
        guard change.operation == .create, case .text = change.id else { return 0 }
        return try seen
    }

    /// The revision up to which a new set has seen everything that the user could see, beyond the
    /// records that it names. It is 0 while parts of a snapshot are missing.
    private var seen: Revision {
        get throws {
            try PendingParts(store: store).isEmpty ? try store.counter("revision") : 0
        }
    }

    /// Whether the tables show everything that the server has sent. If they do not, hidden records
    /// may refer to one that is deleted here. The server then has to refuse a delete that would
    /// reach them, because the user does not know of them.
    private var showsAll: Bool {
        get throws {
            let find = "SELECT EXISTS (SELECT 1 FROM martlet_aside) OR EXISTS (SELECT 1 FROM"
            return try store.connection.integer("\(find) martlet_quarantine)") == 0
        }
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

    /// Returns the revision at which a record last changed, as far as this device knows. If a
    /// record was deleted while its table was away, its revision is stored as a negative number
    /// (`RemoteApplier.noteGone`).
    func confirmedRevision(_ number: Int64, _ id: RecordID) throws -> Revision? {
        let find = try store.connection.statement(
            "SELECT iif(revision < 0, -1 - revision, revision) FROM martlet_records WHERE type = ? AND id = ?"
        )
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

// MARK: - Reading the queue

extension Outbox {
    /// A condition on sets: the answer that is being applied does not contain their verdict.
    static let isWaiting = "settling <> 1"
    /// A condition on sets: they wait, and are undone and redone. The first part is that of the
    /// index.
    static let isMoving = "settling > 0 AND settling = 2"

    /// Returns the sets for which a condition holds, oldest first.
    func queued(where condition: String = "1") throws -> [QueuedSet] {
        let rows = try store.connection.statement(
            """
            SELECT sequence, identifier, sent, applied FROM martlet_outbox
            WHERE \(condition) ORDER BY sequence
            """)
        return try sets(of: rows)
    }

    /// Returns the set with an identifier; nil if it is not in the queue.
    func queued(_ identifier: String) throws -> QueuedSet? {
        let find = try store.connection.statement(
            "SELECT sequence, identifier, sent, applied FROM martlet_outbox WHERE identifier = ?")
        find.bind(1, text: identifier)
        return try sets(of: find).first
    }

    private func sets(of rows: borrowing Statement) throws -> [QueuedSet] {
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

    /// Returns whether a condition holds for any set.
    func hasQueued(where condition: String) throws -> Bool {
        try store.connection.integer("SELECT 1 FROM martlet_outbox WHERE \(condition)") != nil
    }

    /// Returns a set's changes, in the order of types, and in each type with the newest temporary
    /// id last.
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
            let number = rows.integer(0)
            guard let operation = RecordOperation(rawValue: rows.integer(2)) else {
                throw StoreError(
                    .inconsistent, "A stored change does what this version does not know.")
            }
            changes.append(
                StoredChange(
                    number: number, type: store.index(ofNumber: number), id: try rows.recordID(1),
                    operation: operation,
                    baseRevision: rows.integer(3), base: rows.isNull(4) ? nil : rows.blob(4),
                    after: rows.isNull(5) ? nil : rows.blob(5)))
        }
        return changes
    }

    /// Removes a set that has its verdict.
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
