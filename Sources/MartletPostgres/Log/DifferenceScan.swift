import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// Reads differences on one connection: records by the revision at which they last changed, and the
/// rows of those that exist.
struct DifferenceScan {
    /// A record that the scan found.
    private struct FoundRecord {
        let revision: Revision
        let type: Int64
        let id: String
        let own: Revision
        let isDeleted: Bool
        var isHidden = false
    }

    let connection: PostgresConnection
    let model: PostgresModel
    let schema: Schema
    /// The names that a difference checks; nil if there are no policies.
    let names: TableNames?
    let unsendable: UnsendableRows
    /// The number of records whose rows are read at once: in the first page, and at most.
    private static let (leastAtOnce, mostAtOnce) = (250, 2_000)
    /// The approximate bytes of records read at once.
    private static let pageBytes = 1 << 20

    init(
        connection: PostgresConnection, model: PostgresModel, schema: Schema,
        names: TableNames?, unsendable: UnsendableRows
    ) {
        self.connection = connection
        self.model = model
        self.schema = schema
        self.names = names
        self.unsendable = unsendable
    }

    /// Reads a part of a difference; see `LogSource.difference`.
    /// - Returns: The part; nil if there are external writes that are not in the log yet. Rows
    ///   would then be newer than the revision they are sent for.
    func part(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(PostgresError) -> DifferencePart? {
        let logical = try LogicalMoment(connection)
        defer { logical?.close() }
        return try connection.atOneMoment(checking: names) { () throws(PostgresError) in
            guard try !StagingMoment.isPending(connection, logical) else { return nil }
            return try consistentPart(request, limit: limit)
        }
    }

    /// Reads a part like `part`, in an open transaction of a moment at which no external write is
    /// pending. The caller ends the transaction, with the check of names.
    func consistentPart(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(PostgresError) -> DifferencePart {
        let head = try head()
        return try scan(request, through: min(head.revision, limit()), head)
    }

    private func head() throws(PostgresError) -> LogHead {
        let row = try connection.query(
            "SELECT revision, hash, tables FROM _martlet.dataset WHERE number = 1")
        guard row.count == 1 else { throw PostgresError(.other, "_martlet.dataset is empty") }
        // Views may be outdated since another process took the tables up.
        if let names, try row.integer(0, 2) != names.version { throw TableNames.fault }
        return LogHead(
            revision: try row.integer(0, 0), hash: LineageHash(stored: try row.binary(0, 1)))
    }

    private func scan(
        _ request: DifferenceRequest, through last: Revision, _ head: LogHead
    ) throws(PostgresError) -> DifferencePart {
        var rows = GatheredDifference(request, head: head)
        var after = FoundRecord(
            revision: request.since, type: Int64.max, id: "", own: request.since,
            isDeleted: false)
        if let cursor = request.cursor {
            after = FoundRecord(
                revision: request.since + 1, type: cursor.type, id: cursor.id.description,
                own: request.since, isDeleted: false)
        }
        var count = Self.leastAtOnce
        let listing = try listing(request)
        while true {
            let records = try records(
                listing, after, since: request.since, through: last, count: count)
            guard let reached = records.last else {
                return rows.part(reaching: max(request.since, last))
            }
            after = reached
            let read = try self.rows(of: records)
            var bytes = 1
            for record in records {
                guard record.revision <= last else {
                    rows.noteOvertaken()
                    return rows.part(reaching: max(request.since, last))
                }
                if let part = rows.part(endingBefore: record.revision) { return part }
                guard let row = try row(record, read) else { continue }
                bytes += row.byteCount
                if let part = rows.add(row, number: record.type) { return part }
            }
            let fitting = Self.pageBytes * records.count / bytes
            count = min(max(1, fitting), 4 * count, Self.mostAtOnce)
        }
    }

    // MARK: - Found records

    private static let recordsSQL = """
        SELECT revision, type, id, own, deleted FROM (\
        (SELECT r.revision, r.type, r.id, r.revision AS own, r.deleted FROM _martlet.records AS r \
        WHERE r.revision >= $1 AND r.revision <= $4 \
        AND (r.revision, r.type, r.id) > ($1, $2, $3) \
        ORDER BY r.revision, r.type, r.id LIMIT $6) \
        UNION ALL \
        (SELECT a.revision, a.type, a.id, r.revision, r.deleted FROM _martlet.announced AS a \
        JOIN _martlet.records AS r ON r.type = a.type AND r.id = a.id AND r.revision <= $5 \
        WHERE (a.revision, a.type, a.id) > ($1, $2, $3) AND a.revision <= $4 \
        ORDER BY a.revision, a.type, a.id LIMIT $6)) AS p \
        ORDER BY revision, type, id LIMIT $6
        """

    private static let dialect = ViewScan.Dialect(
        records: "_martlet.records", announced: "_martlet.announced", members: "_martlet.members",
        since: "$5::bigint")

    /// Returns the query that lists the records.
    private func listing(_ request: DifferenceRequest) throws(PostgresError) -> String {
        guard let views = request.views else { return Self.recordsSQL }
        let scan = try ViewScan(views, types: model.positions.keys.sorted(), parts: parts)
        return """
            SELECT position, type, id, own, gone, hidden FROM (\(scan.sql(Self.dialect))) AS p \
            WHERE (position, type, id) > ($1, $2, $3) AND $4::bigint IS NOT NULL \
            ORDER BY 1, 2, 3 LIMIT $6
            """
    }

    /// Returns a view's parts as they are stored; nil for the view that shows everything.
    private func parts(of view: Int64) throws(PostgresError) -> String? {
        guard view != View.everything else { return nil }
        let rows = try connection.query(
            "SELECT parts FROM _martlet.views WHERE number = $1", [.integer(view)])
        guard rows.count == 1 else {
            throw PostgresError(.other, "_martlet.views lacks a view that a device has")
        }
        return try rows.text(0, 0)
    }

    /// Returns the next records after one. If the scan has an announced row under its own revision
    /// too, it lists the row only once.
    private func records(
        _ listing: String, _ after: FoundRecord, since: Revision, through last: Revision, count: Int
    ) throws(PostgresError) -> [FoundRecord] {
        let rows = try connection.query(
            listing,
            [
                .integer(after.revision), .integer(after.type), .text(after.id), .integer(last),
                .integer(since), .integer(Int64(count)),
            ])
        var records: [FoundRecord] = []
        records.reserveCapacity(rows.count)
        for row in 0..<rows.count {
            records.append(
                FoundRecord(
                    revision: try rows.integer(row, 0), type: try rows.integer(row, 1),
                    id: try rows.text(row, 2), own: try rows.integer(row, 3),
                    isDeleted: try rows.boolean(row, 4),
                    isHidden: rows.columnCount > 5 ? try rows.boolean(row, 5) : false))
        }
        return records
    }

    // MARK: - Rows

    private typealias Read = [RecordAddress: (rows: PostgresRows, row: Int)]

    private func rows(of records: [FoundRecord]) throws(PostgresError) -> Read {
        var ids: [Int: Set<RecordID>] = [:]
        for record in records where !record.isDeleted {
            guard let type = model.positions[record.type],
                let id = model.forms[type].id(stored: record.id)
            else { continue }
            ids[type, default: []].insert(id)
        }
        let types = ids.keys.sorted()
        guard !types.isEmpty else { return [:] }
        let answers = try connection.pipeline(
            types.map { [model.forms[$0].reading(Array(ids[$0] ?? []))] })
        var read: Read = [:]
        for (type, answer) in zip(types, answers) {
            let rows = try answer[0].get()
            for row in 0..<rows.count {
                read[RecordAddress(type, try model.forms[type].id(rows, row, 0))] = (rows, row)
            }
        }
        return read
    }

    /// Returns a record's row; nil if no device may receive it.
    private func row(
        _ record: FoundRecord, _ read: Read
    ) throws(PostgresError) -> DifferencePart.Row? {
        guard let position = model.positions[record.type] else { return nil }
        let form = model.forms[position]
        guard schema[form.type.name] != nil, let id = form.id(stored: record.id) else { return nil }
        var attributes: Attributes?
        // If another program removed the row, the record is gone, whatever its facts say.
        if !record.isDeleted, let found = read[RecordAddress(position, id)] {
            do throws(PostgresError) {
                attributes = form.columns.withoutNulls(
                    try form.attributes(found.rows, found.row))
            } catch {
                // One bad row does not stop the scan: devices that see all of the type keep their
                // version of it.
                guard error.isUnsendable else { throw error }
                unsendable.note(form.type.name, id, error.message)
                return nil
            }
        }
        return DifferencePart.Row(
            position: record.revision, type: form.type.name, id: id, revision: record.own,
            attributes: attributes, isHidden: record.isHidden)
    }
}
