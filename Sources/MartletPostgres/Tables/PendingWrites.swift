import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// The writes to Martlet's own tables that a transaction still has to make. They are collected, so
/// that many sets need one statement of each kind.
struct PendingWrites {
    /// The permanent id that a device's record received.
    struct Mapping {
        let device: Int64
        let type: Int
        let temporary: Int64
        let id: Int64
    }

    private struct StoredRefusal {
        let refusal: Refusal
        let request: FactsRequest
        let now: Int64
    }

    private struct Acknowledgement {
        let before: Int64
        var sequence: Int64
    }

    private(set) var records: [RecordAddress: RowFacts] = [:]
    /// The records with the keys of deleted ones, with the revisions at which they were made.
    private var remade: [(address: RecordAddress, revision: Revision)] = []
    private var mappings: [Mapping] = []
    private var entries: [(entry: LogEntry, content: [UInt8])] = []
    private var refusals: [StoredRefusal] = []
    private var acknowledgements: [Int64: Acknowledgement] = [:]

    /// Adds the writes of one set.
    /// - Parameter others: Those of the records that have the keys of deleted ones.
    mutating func add(
        _ written: [RecordAddress: RowFacts], _ mappings: [Mapping], _ entry: LogEntry,
        content: [UInt8], remade others: Set<RecordAddress> = []
    ) {
        for (address, facts) in written { records[address] = facts }
        remade += others.map { ($0, entry.revision) }
        self.mappings += mappings
        entries.append((entry, content))
    }

    mutating func remember(_ refusal: Refusal, of request: FactsRequest, now: Int64) {
        guard request.device != 0, request.identifier != nil || request.sequence != nil else {
            return
        }
        refusals.append(StoredRefusal(refusal: refusal, request: request, now: now))
    }

    mutating func acknowledge(_ sequence: Int64, device: KnownDevice) {
        acknowledgements[
            device.number, default: Acknowledgement(before: device.acknowledged, sequence: 0)
        ].sequence = sequence
    }

    // MARK: - Statements

    /// Returns the statements for all writes.
    /// - Parameter floor: The floor of the data set.
    func statements(_ tables: [PostgresTable], floor: Revision) -> [PostgresStatement] {
        var statements: [PostgresStatement] = []
        if !records.isEmpty { statements.append(Self.storing(records, tables)) }
        if !remade.isEmpty {
            let lines = remade.map { (tables[$0.address.type].number, $0.address.id, $0.revision) }
            statements.append(Self.noting(remade: lines))
        }
        if !mappings.isEmpty { statements.append(mapping(tables)) }
        if let last = entries.last?.entry { statements += logging(through: last) }
        if !refusals.isEmpty { statements += refusing() }
        if !acknowledgements.isEmpty { statements += acknowledging(floor) }
        return statements
    }

    static func integers(_ values: some Sequence<Int64>) -> PostgresValue {
        .array(PostgresArray(values.map { .integer($0) }))
    }

    static func texts(_ values: some Sequence<String?>) -> PostgresValue {
        .array(PostgresArray(values.map { $0.map { .text(storable($0)) } ?? .null }))
    }

    /// Returns a text that PostgreSQL can store, which is one without NUL. A message may repeat a
    /// device's text. Identifiers and ids never have a NUL: `RequestCheck` and the checks of ids
    /// refuse it.
    private static func storable(_ text: String) -> String {
        text.utf8.contains(0) ? text.replacing("\0", with: "\u{fffd}") : text
    }

    private static func storing(
        _ records: [RecordAddress: RowFacts], _ tables: [PostgresTable]
    ) -> PostgresStatement {
        // Two processes never conflict here; the order makes the pages consecutive.
        let lines = records.sorted { left, right in
            left.key.type == right.key.type
                ? left.key.id < right.key.id : left.key.type < right.key.type
        }
        return PostgresStatement(
            """
            INSERT INTO _martlet.records (type, id, revision, author, others, deleted) \
            SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], \
            $5::bigint[], $6::boolean[]) ON CONFLICT (type, id) DO UPDATE SET \
            revision = excluded.revision, author = excluded.author, others = excluded.others, \
            deleted = excluded.deleted
            """,
            [
                integers(lines.map { tables[$0.key.type].number }),
                texts(lines.map { $0.key.id.description }),
                integers(lines.map(\.value.revision)), integers(lines.map(\.value.author)),
                integers(lines.map(\.value.others)),
                .array(PostgresArray(lines.map { .boolean($0.value.isDeleted) })),
            ])
    }

    /// Returns the statement that notes records with the keys of deleted ones; see `ViewScan.remadeType`.
    static func noting(
        remade: [(type: Int64, id: RecordID, revision: Revision)]
    ) -> PostgresStatement {
        PostgresStatement(
            """
            INSERT INTO _martlet.announced (revision, type, id) \
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]) ON CONFLICT DO NOTHING
            """,
            [
                integers(remade.map(\.revision)),
                integers(remade.map { ViewScan.remadeType($0.type) }),
                texts(remade.map(\.id.description)),
            ])
    }

    private func mapping(_ tables: [PostgresTable]) -> PostgresStatement {
        PostgresStatement(
            """
            INSERT INTO _martlet.ids (device, type, temporary, id) \
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
            """,
            [
                Self.integers(mappings.map(\.device)),
                Self.integers(mappings.map { tables[$0.type].number }),
                Self.integers(mappings.map(\.temporary)), Self.integers(mappings.map(\.id)),
            ])
    }

    private func logging(through last: LogEntry) -> [PostgresStatement] {
        let lines = entries.map(\.entry)
        return [
            PostgresStatement(
                """
                INSERT INTO _martlet.log (revision, device, identifier, sequence, content, hash, \
                time, temporaries, body) SELECT * FROM unnest($1::bigint[], $2::bigint[], \
                $3::text[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bigint[], $8::text[], \
                $9::bytea[])
                """,
                [
                    Self.integers(lines.map(\.revision)), Self.integers(lines.map(\.device)),
                    Self.texts(lines.map(\.identifier)),
                    .array(PostgresArray(lines.map { $0.sequence.map { .integer($0) } ?? .null })),
                    .array(PostgresArray(entries.map { .binary($0.content) })),
                    .array(PostgresArray(lines.map { .binary($0.hash.bytes) })),
                    Self.integers(lines.map(\.time)), Self.texts(lines.map(\.temporaries)),
                    .array(PostgresArray(lines.map { .binary($0.body) })),
                ]),
            PostgresStatement(
                "UPDATE _martlet.dataset SET revision = $1, hash = $2 WHERE number = 1",
                [.integer(last.revision), .binary(last.hash.bytes)]),
        ]
    }

    private func refusing() -> [PostgresStatement] {
        let requests = refusals.map(\.request)
        let sequences: [PostgresValue] = requests.map {
            $0.sequence.map { .integer($0) } ?? .null
        }
        let identifiers = Self.texts(requests.map(\.identifier))
        let devices = Self.integers(requests.map(\.device))
        return [
            // A new verdict replaces one that the schema has outlived.
            PostgresStatement(
                """
                DELETE FROM _martlet.refusals WHERE identifier IS NOT NULL \
                AND identifier = ANY ($1::text[])
                """, [identifiers]),
            PostgresStatement(
                """
                DELETE FROM _martlet.refusals AS r USING unnest($1::bigint[], $2::bigint[]) \
                AS q(device, sequence) WHERE r.device = q.device AND r.sequence = q.sequence
                """, [devices, .array(PostgresArray(sequences))]),
            PostgresStatement(
                """
                INSERT INTO _martlet.refusals (device, sequence, identifier, content, reason, \
                message, time) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], \
                $4::bytea[], $5::text[], $6::text[], $7::bigint[])
                """,
                [
                    devices, .array(PostgresArray(sequences)), identifiers,
                    .array(PostgresArray(requests.map { .binary($0.content) })),
                    Self.texts(refusals.map(\.refusal.reason.rawValue)),
                    Self.texts(refusals.map(\.refusal.message)),
                    Self.integers(refusals.map(\.now)),
                ]),
        ]
    }

    private func acknowledging(_ floor: Revision) -> [PostgresStatement] {
        let lines = acknowledgements.sorted { $0.key < $1.key }
        let devices = Self.integers(lines.map(\.key))
        let sequences = Self.integers(lines.map(\.value.sequence))
        var statements = [
            PostgresStatement(
                """
                UPDATE _martlet.devices AS d SET acknowledged = q.sequence \
                FROM unnest($1::bigint[], $2::bigint[]) AS q(number, sequence) \
                WHERE d.number = q.number AND d.acknowledged < q.sequence
                """, [devices, sequences])
        ]
        if floor > 0 {
            // Compaction had skipped these entries because their author had not acknowledged them.
            statements.append(
                PostgresStatement(
                    """
                    UPDATE _martlet.log AS l SET body = '', temporaries = NULL \
                    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) \
                    AS q(device, before, sequence) WHERE l.device = q.device AND l.device <> 0 \
                    AND l.sequence IS NOT NULL AND l.sequence > q.before \
                    AND l.sequence <= q.sequence AND l.revision <= $4
                    """,
                    [
                        devices, Self.integers(lines.map(\.value.before)), sequences,
                        .integer(floor),
                    ]))
        }
        return statements
    }
}
