import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// The present state of a record that an external write touched.
private struct ExternalRecordChange {
    let address: RecordAddress
    let facts: RowFacts?
    /// The row; nil if it is gone, or if no device can receive it.
    let row: Attributes?
    /// True if the log has the record, and is to leave it out from now on.
    var isLeftOut = false

    /// The approximate bytes of the record in an entry.
    var byteCount: Int { 40 + address.id.wireByteCount + (row?.wireByteCount ?? 0) }
}

/// The writes that are taken at once.
private struct ExternalPart {
    var records: [ExternalRecordChange] = []
    var addresses: Set<RecordAddress> = []
    var bytes = 0
    /// The number of the last note that is dealt with.
    var number: Int64 = 0

    mutating func add(_ record: ExternalRecordChange) {
        guard addresses.insert(record.address).inserted else { return }
        records.append(record)
        bytes += record.byteCount
    }
}

extension EmbeddedSession {
    /// The number of records up to which committed writes stay in one set.
    private static let mostRecords = 10_000
    /// The most notes that are read at once.
    private static let mostNotes = 100_000

    func hasExternalWrites() throws(SQLiteError) -> Bool {
        let statement = try connection.statement("SELECT EXISTS (SELECT 1 FROM martlet_outside)")
        defer { statement.reset() }
        return try statement.step() && statement.integer(0) != 0
    }

    /// Puts external writes into the log: all that were committed since the last look, as one set.
    /// If they are far more than `maxBytes`, it takes a part, in the order of the writes.
    func takeExternalWrites(
        now: Int64, maxBytes: Int, _ unsendable: UnsendableRows
    ) throws(SQLiteError) -> [LogEntry] {
        guard mayHaveExternalWrites else { return [] }
        let notes = try externalNotes(unsendable)
        guard let last = notes.last else {
            mayHaveExternalWrites = false
            isExternalParted = false
            return []
        }
        var part = ExternalPart()
        let room = isExternalParted ? maxBytes : 8 * maxBytes
        part = try gather(notes, room: room, unsendable)
        if part.number < last.number || notes.count == Self.mostNotes {
            if !isExternalParted { part = try gather(notes, room: maxBytes, unsendable) }
            isExternalParted = true
            try complete(&part)
        } else {
            mayHaveExternalWrites = false
            isExternalParted = false
        }
        let deleting = try connection.statement("DELETE FROM martlet_outside WHERE number <= ?1")
        defer { deleting.reset() }
        deleting.bind(1, integer: part.number)
        while try deleting.step() {}
        return try enter(part.records, now: now)
    }

    // MARK: - Reading

    /// Returns the notes in order. A note has no address if no device can know the record.
    private func externalNotes(
        _ unsendable: UnsendableRows
    ) throws(SQLiteError) -> [(number: Int64, address: RecordAddress?)] {
        var positions: [Int64: Int] = [:]
        for (position, number) in numbers.enumerated() { positions[number] = position }
        let statement = try connection.statement(
            "SELECT number, type, id FROM martlet_outside ORDER BY number LIMIT ?1")
        defer { statement.reset() }
        statement.bind(1, integer: Int64(Self.mostNotes))
        var notes: [(Int64, RecordAddress?)] = []
        while try statement.step() {
            var address: RecordAddress?
            if let position = positions[statement.integer(1)] {
                address = try externalAddress(statement, position, unsendable)
            }
            notes.append((statement.integer(0), address))
        }
        return notes
    }

    private func externalAddress(
        _ statement: Statement, _ type: Int, _ unsendable: UnsendableRows
    ) throws(SQLiteError) -> RecordAddress? {
        let name = schema.types[type]
        let id: RecordID
        do throws(SQLiteError) {
            id = try statement.recordID(2)
        } catch {
            guard error.isMismatch else { throw error }
            unsendable.note(
                name.name, Self.literal(statement, 2), "its key cannot be sent: \(error.message)")
            return nil
        }
        if let fault = SendableKey.fault(of: id, name, greatest: Limits.greatestKey) {
            unsendable.note(name.name, id, fault)
            return nil
        }
        return RecordAddress(type, id)
    }

    /// Returns a key that is neither an integer nor UTF-8 in the form of an SQL literal, for the
    /// operator.
    private static func literal(_ statement: Statement, _ column: Int32) -> RecordID {
        switch statement.storage(column) {
        case .null: return .text("NULL")
        case .integer, .real: return .text(statement.text(column))
        case .text, .blob: break
        }
        let isText = statement.storage(column) == .text
        let bytes = statement.blob(column)
        let most = 64
        let digits = bytes.prefix(most).map {
            String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
        }
        let literal = "x'\(digits.joined())\(bytes.count > most ? "…" : "")'"
        return .text(isText ? "CAST(\(literal) AS TEXT)" : literal)
    }

    /// Reads the records of the notes, each at its last note, until there are enough.
    private func gather(
        _ notes: [(number: Int64, address: RecordAddress?)], room: Int,
        _ unsendable: UnsendableRows
    ) throws(SQLiteError) -> ExternalPart {
        var last: [RecordAddress: Int64] = [:]
        for note in notes { if let address = note.address { last[address] = note.number } }
        var part = ExternalPart()
        for note in notes {
            if part.bytes >= room || part.records.count >= Self.mostRecords { break }
            part.number = note.number
            guard let address = note.address, last[address] == note.number,
                let record = try externalRecordChange(address, unsendable)
            else { continue }
            part.add(record)
        }
        return part
    }

    /// Returns a record as its table has it; nil if devices cannot receive the row, and the log does not have
    /// the record or leaves it out already.
    private func externalRecordChange(
        _ address: RecordAddress, _ unsendable: UnsendableRows?
    ) throws(SQLiteError) -> ExternalRecordChange? {
        do throws(SQLiteError) {
            let row = try tables[address.type].read(address.id)
            return ExternalRecordChange(address: address, facts: try rowFacts(address), row: row)
        } catch {
            guard error.isMismatch else { throw error }
            guard let unsendable else { return nil }
            unsendable.note(schema.types[address.type].name, address.id, error.message)
            guard let facts = try rowFacts(address), !facts.isDeleted, !facts.isLeftOut else {
                return nil
            }
            return ExternalRecordChange(address: address, facts: facts, row: nil, isLeftOut: true)
        }
    }

    /// Adds the records to which the part's records refer and that the log lacks. They are first,
    /// so that devices have them wherever the part is cut.
    private func complete(_ part: inout ExternalPart) throws(SQLiteError) {
        let own = part.records.count
        defer {
            part.records = part.records[own...].reversed() + part.records[..<own]
        }
        var next = 0
        while next < part.records.count {
            let record = part.records[next]
            next += 1
            guard let row = record.row else { continue }
            for (attribute, target) in columns[record.address.type].references {
                guard let id = row[attribute].flatMap({ RecordID($0) }) else { continue }
                let address = RecordAddress(target, id)
                guard !part.addresses.contains(address), isSendable(address),
                    try rowFacts(address)?.isDeleted ?? true,
                    let parent = try externalRecordChange(address, nil), parent.row != nil
                else { continue }
                part.add(parent)
            }
        }
    }

    // MARK: - Writing

    /// Makes one entry, several if one would be too long to be sent, or none if devices get none of
    /// the changes. A record that is left out from now on has no part in the entry's set, but leaves views at
    /// its revision.
    private func enter(
        _ records: [ExternalRecordChange], now: Int64
    ) throws(SQLiteError) -> [LogEntry] {
        // No id is assigned twice, even if no device has seen the record.
        for address in records.map(\.address) {
            if case .integer(let id) = address.id { skipIDs(of: address.type, through: id) }
        }
        let known = records.filter { $0.row != nil || $0.facts?.isDeleted == false }
        guard !known.isEmpty else { return [] }
        var entries: [LogEntry] = []
        for part in EntryParts.of(known, bytes: \.byteCount) {
            entries.append(try enterPart(known[part], now: now))
        }
        return entries
    }

    private func enterPart(
        _ known: ArraySlice<ExternalRecordChange>, now: Int64
    ) throws(SQLiteError) -> LogEntry {
        var account = SetEffects(types: Set(known.map(\.address.type)).sorted())
        let revision = try nextRevision()
        for record in known {
            let address = record.address
            guard !record.isLeftOut else {
                try store(.leftOut(at: revision), of: address)
                continue
            }
            let isNew = record.facts?.isDeleted ?? true
            if let row = record.row {
                account.set(
                    address, isNew ? .created : .updated,
                    isNew ? columns[address.type].withoutNulls(row) : row)
            } else {
                account.set(address, .deleted)
            }
            let isDeleted = record.row == nil
            try store(
                record.facts?.changed(by: 0, at: revision, isDeleted: isDeleted)
                    ?? RowFacts(revision: revision, author: 0, others: 0), of: address)
            if record.facts?.isDeleted == true { try noteRemade(address, at: revision) }
        }
        let body: [UInt8]
        do throws(WireFault) {
            body = try SyncCoder.encode(account.changeSet(schema, revision: revision).set)
        } catch {
            throw SQLiteError.mismatch("rows of other programs cannot be sent: \(error.message)")
        }
        let entry = LogEntry(
            revision: revision, device: 0, identifier: nil, sequence: nil, temporaries: nil,
            body: body, hash: head.hash.appending(body, identifier: nil), time: now)
        try append(entry, content: nil, now: now)
        return entry
    }
}
