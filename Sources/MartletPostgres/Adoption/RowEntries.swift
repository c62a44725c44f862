import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// Makes entries of the log from the rows that are in tables at their adoption, so that devices
/// receive them. The folded log then equals the tables.
struct RowEntries {
    /// The records of one entry, unless references require more.
    static let recordsPerSet = 1_000
    /// The approximate bytes of texts in one entry.
    static let bytesPerSet = 1 << 20
    /// The most rows that are named if they cannot be sent.
    private static let mostNamed = 10

    let log: LogAppender
    let schema: PostgresSchema
    private let columns: [TypeColumns]

    init(_ log: LogAppender, _ schema: PostgresSchema) {
        self.log = log
        self.schema = schema
        columns = schema.schema.types.map { TypeColumns($0, schema: schema.schema) }
    }

    /// Adds all rows of the types, parents before children. Records that refer to each other in a
    /// circle are in one entry, together with the records that refer to them, unless they are too
    /// large for one.
    /// - Parameter types: The positions of the types in the schema.
    /// - Throws: `AdoptionError` that names rows that no device can receive; `PostgresError`.
    func enter(types: [Int]) throws {
        let wanted = Set(types)
        var components = TypeComponents { type in
            columns[type].references.map(\.target).filter(wanted.contains)
        }
        for type in types { components.visit(type) }
        var problems: [AdoptionError.Problem] = []
        for group in components.found {
            let isLinked =
                group.count > 1 || columns[group[0]].references.contains { $0.target == group[0] }
            if isLinked {
                try enterLinked(group, &problems)
            } else {
                try enterFlat(group[0], &problems)
            }
        }
        guard problems.isEmpty else { throw AdoptionError(problems) }
    }

    private func enterFlat(_ type: Int, _ problems: inout [AdoptionError.Problem]) throws {
        var entry = Entry(type: type)
        let rows = try TableRows(schema.tables[type], on: log.connection)
        try rows.forEach(
            unsendable: { note(type, $0, $1, &problems) },
            { id, row in
                try add(id, row, to: &entry)
                if entry.isFull { try write(&entry) }
            })
        try write(&entry)
    }

    // MARK: - Rows that refer to rows of their own group

    /// Adds rows of types that refer to each other. Memory holds only ids and references; the rows
    /// are read when they are written.
    private func enterLinked(_ types: [Int], _ problems: inout [AdoptionError.Problem]) throws {
        var order = LinkOrder()
        for type in types {
            let references = columns[type].references.filter { types.contains($0.target) }
            let table = schema.tables[type]
            let holders = references.compactMap { reference in
                table.columns.first { $0.name == reference.attribute }
            }
            let rows = try TableRows(table, columns: holders, on: log.connection)
            try rows.forEach(
                unsendable: { note(type, $0, $1, &problems) },
                { id, row in
                    order.add(
                        RecordAddress(type, id),
                        parents: references.compactMap { reference in
                            row[reference.attribute].flatMap { RecordID($0) }
                                .map { RecordAddress(reference.target, $0) }
                        })
                })
        }
        let (free, bound) = order.sorted()
        for start in stride(from: 0, to: free.count, by: Self.recordsPerSet) {
            let part = free[start..<min(start + Self.recordsPerSet, free.count)]
            try write(addresses: Array(part), &problems)
        }
        try write(addresses: bound, &problems)
    }

    private func write(
        addresses: [RecordAddress], _ problems: inout [AdoptionError.Problem]
    ) throws {
        guard !addresses.isEmpty else { return }
        var ids: [Int: [RecordID]] = [:]
        for address in addresses { ids[address.type, default: []].append(address.id) }
        var entries: [Entry] = []
        for (type, ids) in ids.sorted(by: { $0.key < $1.key }) {
            var entry = Entry(type: type)
            let rows = try TableRows(schema.tables[type], on: log.connection)
            try rows.forEach(
                of: ids, unsendable: { note(type, $0, $1, &problems) },
                { id, row in try add(id, row, to: &entry) })
            entries.append(entry)
        }
        guard problems.isEmpty else { return }
        let bytes = entries.reduce(0) { $0 + $1.bytes }
        if bytes > Limits.entryBytes / 2, addresses.count > 1 {
            let half = addresses.count / 2
            try write(addresses: Array(addresses[..<half]), &problems)
            return try write(addresses: Array(addresses[half...]), &problems)
        }
        for entry in entries { try record(entry) }
        try log.enter(entries.map(changes))
    }

    // MARK: - Entries

    /// Records of one type that are being added to the log.
    private struct Entry {
        let type: Int
        var records: [RecordEntry] = []
        var bytes = 0

        var isFull: Bool {
            records.count >= RowEntries.recordsPerSet || bytes >= RowEntries.bytesPerSet
        }
    }

    private func add(_ id: RecordID, _ row: Attributes, to entry: inout Entry) throws {
        entry.records.append(
            RecordEntry(
                id: id, revision: log.head.revision + 1,
                attributes: columns[entry.type].withoutNulls(row)))
        entry.bytes += row.wireByteCount + id.wireByteCount
    }

    private func write(_ entry: inout Entry) throws {
        guard !entry.records.isEmpty else { return }
        try record(entry)
        try log.enter([changes(entry)])
        entry = Entry(type: entry.type)
    }

    private func changes(_ entry: Entry) -> TypeChanges {
        TypeChanges(
            name: schema.schema.types[entry.type].name, create: entry.records.map(\.id),
            entries: entry.records)
    }

    /// Writes the records' revisions.
    private func record(_ entry: Entry) throws(PostgresError) {
        let ids = entry.records.map { PostgresValue.text($0.id.description) }
        _ = try log.connection.query(
            """
            INSERT INTO _martlet.records (type, id, revision, author, others, deleted) \
            SELECT $1, id, $2, 0, 0, false FROM unnest($3::text[]) AS id
            """,
            [
                .integer(schema.tables[entry.type].number), .integer(log.head.revision + 1),
                .array(PostgresArray(ids)),
            ])
    }

    private func note(
        _ type: Int, _ id: RecordID, _ value: UnsendableValue,
        _ problems: inout [AdoptionError.Problem]
    ) {
        guard problems.count < Self.mostNamed else { return }
        problems.append(
            AdoptionError.Problem(
                """
                table “\(schema.tables[type].name)” has a row that no device can be sent, with the \
                key \(id): \(value.reason)
                """, "correct it"))
    }
}
