import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// Makes entries of the log from external writes, and writes them with one pipeline.
struct ExternalEntries {
    private let connection: PostgresConnection
    private let schema: Schema
    private let forms: [ExternalRowCodec]
    private let columns: [TypeColumns]
    private let unsendable: UnsendableRows
    private let now: Int64
    private var head: LogHead
    private(set) var made: [LogEntry] = []
    private var statements: [PostgresStatement] = []

    /// Begins at the end of the log.
    /// - Parameters:
    ///   - head: The end of the log, which only the caller writes.
    ///   - now: Milliseconds since 1970.
    init(
        on connection: PostgresConnection, schema: Schema, forms: [ExternalRowCodec],
        columns: [TypeColumns], unsendable: UnsendableRows, head: LogHead, now: Int64
    ) {
        self.connection = connection
        self.schema = schema
        self.forms = forms
        self.columns = columns
        self.unsendable = unsendable
        self.head = head
        self.now = now
    }

    /// Makes one entry, or several if one would be too large to send, or none if devices receive
    /// none of the changes. A record that is left out from now on has no part in the entry's set, but leaves
    /// views at its revision.
    /// - Parameter records: The records, each once, with parents before children if the order
    ///   matters.
    mutating func enter(
        _ records: [ExternalRecord], authors: [String?]
    ) throws(PostgresError) {
        for part in EntryParts.of(records, bytes: \.byteCount) {
            try enterPart(records[part], authors: authors)
        }
    }

    private mutating func enterPart(
        _ records: ArraySlice<ExternalRecord>, authors: [String?]
    ) throws(PostgresError) {
        var account = SetEffects(types: Set(records.map(\.address.type)).sorted())
        var touched: [(address: RecordAddress, isDeleted: Bool)] = []
        var leftOut: [RecordAddress] = []
        var new: [RecordAddress] = []
        for record in records {
            switch record.row {
            case .present(let row):
                account.set(
                    record.address, record.isKnown ? .updated : .created,
                    record.isKnown ? row : columns[record.address.type].withoutNulls(row))
                if !record.isKnown { new.append(record.address) }
            case .absent:
                guard record.isKnown else { continue }
                account.set(record.address, .deleted)
            case .unsendable(let reason):
                let type = schema.types[record.address.type].name
                unsendable.note(type, record.address.id, reason)
                if record.isKnown, !record.isLeftOut { leftOut.append(record.address) }
                continue
            }
            touched.append((record.address, record.row == .absent))
        }
        guard !touched.isEmpty || !leftOut.isEmpty else { return }
        let revision = head.revision + 1
        let body: [UInt8]
        do throws(WireFault) {
            body = try SyncCoder.encode(account.changeSet(schema, revision: revision).set)
        } catch {
            throw PostgresError(.other, "rows of other programs cannot be sent: \(error)")
        }
        let entry = LogEntry(
            revision: revision, device: 0, identifier: nil, sequence: nil, temporaries: nil,
            body: body, hash: head.hash.appending(body, identifier: nil), time: now)
        made.append(entry)
        head = LogHead(revision: revision, hash: entry.hash)
        note(entry, author: Set(authors.compactMap { $0 }).sorted().joined(separator: ", "))
        if !new.isEmpty { noteRemade(new, at: revision) }
        if !touched.isEmpty { note(touched, at: revision) }
        if !leftOut.isEmpty { noteAsLeftOut(leftOut, at: revision) }
    }

    /// Runs the collected statements in one round trip.
    /// - Parameter more: Other statements to run with them.
    mutating func write(_ more: [PostgresStatement]) throws(PostgresError) {
        statements += more
        if !made.isEmpty {
            statements.append(
                PostgresStatement(
                    "UPDATE _martlet.dataset SET revision = $1, hash = $2",
                    [.integer(head.revision), .binary(head.hash.bytes)]))
        }
        for answer in try connection.pipeline([statements])[0] { _ = try answer.get() }
        statements = []
    }

    private mutating func note(_ entry: LogEntry, author: String) {
        statements.append(
            PostgresStatement(
                """
                INSERT INTO _martlet.log (revision, device, hash, time, author, body) \
                VALUES ($1, 0, $2, $3, nullif($4::text, ''), $5)
                """,
                [
                    .integer(entry.revision), .binary(entry.hash.bytes), .integer(entry.time),
                    .text(author), .binary(entry.body),
                ]))
    }

    private mutating func note(
        _ touched: [(address: RecordAddress, isDeleted: Bool)], at revision: Revision
    ) {
        func array(_ values: [PostgresValue]) -> PostgresValue { .array(PostgresArray(values)) }
        statements.append(
            PostgresStatement(
                """
                INSERT INTO _martlet.records (type, id, revision, author, others, deleted) \
                SELECT type, id, $4, 0, 0, deleted \
                FROM unnest($1::bigint[], $2::text[], $3::boolean[]) AS t (type, id, deleted) \
                ON CONFLICT (type, id) DO UPDATE SET revision = excluded.revision, author = 0, \
                others = records.revision, deleted = excluded.deleted
                """,
                [
                    array(touched.map { .integer(forms[$0.address.type].table.number) }),
                    array(touched.map { .text($0.address.id.description) }),
                    array(touched.map { .boolean($0.isDeleted) }), .integer(revision),
                ]))
    }

    /// Notes those of the new records that have the keys of deleted ones; see `ViewScan.remadeType`. The facts
    /// of the records are those from before.
    private mutating func noteRemade(_ addresses: [RecordAddress], at revision: Revision) {
        statements.append(
            PostgresStatement(
                """
                INSERT INTO _martlet.announced (revision, type, id) SELECT $3, -r.type, r.id \
                FROM _martlet.records AS r JOIN unnest($1::bigint[], $2::text[]) AS t (type, id) \
                ON r.type = t.type AND r.id = t.id COLLATE "C" WHERE r.deleted ON CONFLICT DO NOTHING
                """,
                [
                    PendingWrites.integers(addresses.map { forms[$0.type].table.number }),
                    PendingWrites.texts(addresses.map(\.id.description)), .integer(revision),
                ]))
    }

    /// Marks records of the log whose rows no device can receive; see `RowFacts.leftOut(at:)`.
    private mutating func noteAsLeftOut(_ addresses: [RecordAddress], at revision: Revision) {
        statements.append(
            PostgresStatement(
                """
                UPDATE _martlet.records AS r SET revision = $4, author = 0, others = $3 \
                FROM unnest($1::bigint[], $2::text[]) AS t (type, id) \
                WHERE r.type = t.type AND r.id = t.id COLLATE "C" AND NOT r.deleted
                """,
                [
                    PendingWrites.integers(addresses.map { forms[$0.type].table.number }),
                    PendingWrites.texts(addresses.map(\.id.description)),
                    .integer(RowFacts.leftOut), .integer(revision),
                ]))
    }
}
