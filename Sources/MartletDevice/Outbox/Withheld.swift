internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Holds the records in which other programs wrote values that no set can carry: an infinity,
/// binary data in a column that is not declared BLOB, text that is not UTF-8, a value of another
/// kind than the column's, which every server refuses, or more than fits into one set.
///
/// Such an edit is neither queued nor lost: the table shows it, and everything else is
/// synchronised. It is tried again when the record is written once more, and when the file is
/// opened. Until then it is like a queued edit that cannot be sent: remote change is applied under
/// it, by the record's base image.
///
/// If another device deleted the record, or left no room for the values, the table does not show
/// them. Such an edit is tried again only with each remote change. Meanwhile, writes to the record
/// are ordinary edits.
struct Withheld {
    let store: LocalStore
    /// The time, in milliseconds since 1970.
    let now: Int64
    /// The number of records that were added and not withheld before.
    var added = 0

    init(store: LocalStore, now: Int64) {
        self.store = store
        self.now = now
    }

    struct Record {
        let key: RecordKey
        /// The type's number; nil if the schema no longer has the type.
        let type: Int?
        /// The revision that the edit was based on.
        let revision: Revision
        /// The record before the edit; nil if the edit created it.
        let image: [UInt8]?
        let message: String
        let since: Int64
        /// Whether the table shows what the record was given.
        let isShown: Bool
    }

    var isEmpty: Bool {
        get throws {
            try store.connection.integer("SELECT 1 FROM martlet_withheld LIMIT 1") == nil
        }
    }

    /// Returns all records, in the order of types and keys.
    func list() throws -> [WithheldRecord] {
        try all().map { record in
            WithheldRecord(
                type: try store.typeName(ofNumber: record.key.type), id: record.key.id,
                message: record.message, since: record.since, isShown: record.isShown)
        }
    }

    func all() throws -> [Record] {
        let rows = try store.connection.statement(
            """
            \(Self.read)
            ORDER BY type, CASE WHEN typeof(id) = 'integer' AND id < 0 THEN -id ELSE id END
            """)
        defer { rows.reset() }
        var records: [Record] = []
        while try rows.step() { records.append(try record(in: rows)) }
        return records
    }

    private static let read = """
        SELECT type, id, revision, image, message, at, shows FROM martlet_withheld
        """

    private func record(_ key: RecordKey) throws -> Record? {
        let rows = try store.connection.statement("\(Self.read) WHERE type = ? AND id = ?")
        rows.bind(1, integer: key.type)
        rows.bind(2, key.id)
        defer { rows.reset() }
        return try rows.step() ? record(in: rows) : nil
    }

    private func record(in rows: Statement) throws -> Record {
        let key = RecordKey(type: rows.integer(0), id: try rows.recordID(1))
        return Record(
            key: key, type: store.index(ofNumber: key.type), revision: rows.integer(2),
            image: rows.isNull(3) ? nil : rows.blob(3), message: rows.text(4),
            since: rows.integer(5), isShown: rows.integer(6) != 0)
    }
}

// MARK: - Giving up

extension Withheld {
    /// Gives a record's edit up, within a save. The table shows the earlier values again, and the
    /// end of the save does not count this as a change.
    /// - Throws: `StoreError` `.unknown` if the record is not withheld; `SQLiteError` if another
    ///   record refers to it, or has taken a unique value that it had before.
    func drop(_ dropped: WithheldRecord) throws {
        let number = try store.number(ofType: dropped.type)
        let found = try number.flatMap { try record(RecordKey(type: $0, id: dropped.id)) }
        guard let record = found else {
            throw StoreError(
                .unknown,
                "The record \(dropped.id) of \(dropped.type) is not withheld; list those that are.")
        }
        guard record.isShown, let type = record.type else { return try forget(record.key) }
        let table = store.tables[type]
        guard let image = try record.image.map({ try SyncCoder.decodeAttributes($0) }) else {
            _ = try table.delete(record.key.id)
            return
        }
        let names = table.type.attributes.filter { !$0.isGenerated }.map(\.name)
        _ = try table.update(
            record.key.id,
            Attributes(names: names, values: names.map { image[$0] ?? .null }))
    }
}

// MARK: - Changes that can be sent

extension Withheld {
    /// Returns the changes of a save.
    /// - Throws: `StoreError` `.value` if a record holds a value that cannot be sent.
    mutating func changes(ofSave notes: [NotedRecord]) throws -> [RecordChange] {
        let waiting = try waiting(among: notes)
        return try notes.compactMap { note in
            let record = waiting[key(note)]
            do {
                guard let record else { return try change(of: note) }
                return try release(record, as: note.type)
            } catch let error as SQLiteError where error.isMismatch {
                throw StoreError(
                    .value,
                    "The record \(note.id) of \(store.schema.types[note.type].name) cannot be"
                        + " sent: \(error.message). Give it another value in the same save.")
            }
        }
    }

    /// Returns the changes of other programs, and withholds those that no set can carry.
    /// - Parameter triesAgain: Whether to try all withheld records again; otherwise only if some of
    ///   them were written once more.
    mutating func changes(
        of notes: [NotedRecord], triesAgain: Bool
    ) throws -> [RecordChange] {
        let written = try waiting(among: notes)
        let waiting = triesAgain || !written.isEmpty ? try waiting() : [:]
        var changes: [RecordChange] = []
        for note in notes where written[key(note)] == nil {
            do {
                if let change = try change(of: note) { changes.append(change) }
            } catch let error as SQLiteError where error.isMismatch {
                try put(note, reason: error.message + ".")
            }
        }
        for record in waiting.isEmpty ? [] : try all() {
            guard waiting[record.key] != nil, let type = record.type else { continue }
            do {
                if let change = try release(record, as: type) { changes.append(change) }
            } catch let error as SQLiteError where error.isMismatch {
                try put(note(record, type), reason: error.message + ".")
            }
        }
        return try withoutDependents(changes)
    }

    /// Withholds changes that are larger than a set may be.
    mutating func leaveOut(
        _ changes: [RecordChange], _ sizes: [Int]
    ) throws -> ([RecordChange], [Int]) {
        var kept: [RecordChange] = []
        for (change, size) in zip(changes, sizes) {
            if size > Limits.savedSetBytes {
                try put(
                    note(change),
                    reason: "It takes about \(size >> 10) KiB, and at most"
                        + " \(Limits.savedSetBytes >> 10) KiB can be sent at once.")
            } else {
                kept.append(change)
            }
        }
        kept = try withoutDependents(kept)
        return (kept, try kept.map { try Outbox(store: store).bytes(of: $0) })
    }

    /// Withholds changes that refer to a new record that is withheld itself, or whose table is
    /// away, because no other device would know its id.
    private mutating func withoutDependents(_ changes: [RecordChange]) throws -> [RecordChange] {
        let away = Set(try store.awayNew.map { RecordKey(type: $0.number, id: $0.id) })
        guard try !isEmpty || !away.isEmpty else { return changes }
        var referring: [RecordKey: [Int]] = [:]
        var open: [(change: Int, name: String)] = []
        for (index, change) in changes.enumerated() {
            for (target, name) in try references(of: change) {
                referring[target, default: []].append(index)
                guard try away.contains(target) || isMade(target) else { continue }
                open.append((index, name))
            }
        }
        var left: Set<Int> = []
        while let (index, name) = open.popLast() {
            guard left.insert(index).inserted else { continue }
            let note = note(changes[index])
            try put(note, reason: "It refers to a record of \(name) that waits, too.")
            guard changes[index].operation == .create else { continue }
            let name = store.schema.types[note.type].name
            for other in referring[key(note)] ?? [] { open.append((other, name)) }
        }
        return changes.indices.filter { !left.contains($0) }.map { changes[$0] }
    }

    /// Returns whether a record is withheld, and its withheld edit created it.
    private func isMade(_ key: RecordKey) throws -> Bool {
        let find = try store.connection.statement(
            "SELECT 1 FROM martlet_withheld WHERE type = ? AND id = ? AND image IS NULL")
        find.bind(1, integer: key.type)
        find.bind(2, key.id)
        defer { find.reset() }
        return try find.step()
    }

    private func references(of change: RecordChange) throws -> [(RecordKey, name: String)] {
        try store.schema.types[change.type].references.compactMap { reference in
            guard let value = change.after[reference.attribute], let id = RecordID(value),
                let target = try store.number(ofType: reference.target)
            else { return nil }
            return (RecordKey(type: target, id: id), reference.target)
        }
    }

    /// Returns the withheld records whose values the table shows, by key.
    private func waiting() throws -> [RecordKey: Record] {
        guard try !isEmpty else { return [:] }
        return Dictionary(
            uniqueKeysWithValues: try all().filter(\.isShown).map { ($0.key, $0) })
    }

    /// Returns the shown withheld records among the noted ones. It looks each up by its key, so
    /// that a save does not go through all withheld records.
    private func waiting(among notes: [NotedRecord]) throws -> [RecordKey: Record] {
        guard try !isEmpty else { return [:] }
        var waiting: [RecordKey: Record] = [:]
        for note in notes {
            guard let record = try record(key(note)), record.isShown else { continue }
            waiting[record.key] = record
        }
        return waiting
    }

    private func key(_ note: NotedRecord) -> RecordKey {
        RecordKey(type: store.numbers[note.type], id: note.id)
    }

    private func note(_ record: Record, _ type: Int) throws -> NotedRecord {
        store.note(
            of: record.key.id, type: type,
            image: try record.image.map { try SyncCoder.decodeAttributes($0) })
    }

    private func note(_ change: RecordChange) -> NotedRecord {
        NotedRecord(
            type: change.type, id: change.id, image: change.before?.withoutNulls(),
            schema: store.schema)
    }

    /// Returns the overall change of a noted record; nil if its values are the same as before.
    /// - Throws: `SQLiteError` with `isMismatch` if the record was given a value that the wire
    ///   cannot carry, or that does not fit the column's kind.
    private func change(of note: NotedRecord) throws -> RecordChange? {
        guard let change = try store.change(of: note) else { return nil }
        let type = store.schema.types[change.type]
        for (name, value) in zip(change.after.names, change.after.values) {
            guard let attribute = type[attribute: name],
                let fault = RecordTable.mismatch(value, attribute)
            else { continue }
            throw SQLiteError.mismatch("column “\(name)” does not fit: \(fault)")
        }
        return change
    }

    /// Stops withholding a record, and returns its edit; nil if that changes nothing any more.
    /// - Throws: `SQLiteError` with `isMismatch` if the edit still cannot be sent.
    private func release(_ record: Record, as type: Int) throws -> RecordChange? {
        var change = try change(of: note(record, type))
        if record.image != nil { change?.base = record.revision }
        try forget(record.key)
        if change == nil {
            let base = try store.connection.statement(
                """
                DELETE FROM martlet_base WHERE type = ?1 AND id = ?2 AND NOT EXISTS (
                    SELECT 1 FROM martlet_changes WHERE type = ?1 AND id = ?2)
                """)
            base.bind(1, integer: record.key.type)
            base.bind(2, record.key.id)
            try base.run()
        }
        return change
    }
}
