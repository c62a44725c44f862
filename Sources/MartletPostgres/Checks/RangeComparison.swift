import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit
import SQLiteRecords

/// Compares ranges of one type in the caller's read transaction, with one scan of the table for
/// all.
struct RangeComparison {
    /// The room that is left for all ranges of one answer.
    struct Budget {
        var rows = Limits.checkRows
        /// The approximate bytes of rows.
        var bytes = Limits.checkBytes
        var leftOut = Limits.checkLeftOut
    }

    /// The number of rows, on either side, up to which a range is answered with its rows.
    private static let fewRows: Int64 = 16
    /// The rows fetched at once.
    private static let atOnce = 2_000

    private let connection: PostgresConnection
    private let form: TableFormat
    private let revision: Revision
    private let unsendable: UnsendableRows
    private var hasher: RowHasher
    private let hashed: [String]
    private var hashes: [RangeHash] = []
    private var changed: [[RecordID]] = []

    init(
        connection: PostgresConnection, form: TableFormat, attributes: [Attribute],
        revision: Revision, unsendable: UnsendableRows
    ) {
        self.connection = connection
        self.form = form
        self.revision = revision
        self.unsendable = unsendable
        hasher = RowHasher(type: form.type, attributes: attributes)
        hashed = hasher.attributes.map(\.name)
    }

    /// Returns verdicts on ranges that do not overlap, in the order of their keys; nil if too many
    /// records have changed since the device's revision.
    mutating func compare(
        _ ranges: [CheckedRange], _ budget: inout Budget
    ) throws(PostgresError) -> [RangeVerdict]? {
        guard let first = ranges.first, let last = ranges.last else { return [] }
        hashes = ranges.map { _ in RangeHash() }
        changed = ranges.map { _ in [] }
        let left = try changedRecords(limit: budget.leftOut * 8)
        guard left.count <= budget.leftOut * 8 else { return nil }
        for id in left.sorted() {
            guard let rangeIndex = Self.rangeIndex(of: id, in: ranges) else { continue }
            changed[rangeIndex].append(id)
            budget.leftOut -= 1
        }
        guard budget.leftOut >= 0 else { return nil }
        try scan(ranges, from: first.from, below: last.below, without: left)
        var verdicts: [RangeVerdict] = []
        for (rangeIndex, range) in ranges.enumerated() {
            verdicts.append(try verdict(rangeIndex, range, &budget))
        }
        return verdicts
    }

    private func verdict(
        _ rangeIndex: Int, _ range: CheckedRange, _ budget: inout Budget
    ) throws(PostgresError) -> RangeVerdict {
        let hash = hashes[rangeIndex]
        let changed = changed[rangeIndex]
        if changed.isEmpty, hash == range.hash { return .equal }
        let isFew = min(hash.count, range.hash.count) <= Self.fewRows
        guard isFew, budget.rows > 0, budget.bytes > 0 else {
            return .hash(hash, without: changed)
        }
        return .rows(try rows(range, without: changed, &budget))
    }

    /// Returns the index of the range that contains a key; nil if there is none.
    private static func rangeIndex(of id: RecordID, in ranges: [CheckedRange]) -> Int? {
        var low = 0
        var high = ranges.count
        // The last range that begins at or before the key.
        while low < high {
            let middle = (low + high) / 2
            if let from = ranges[middle].from, id < from { high = middle } else { low = middle + 1 }
        }
        guard low > 0 else { return nil }
        if let below = ranges[low - 1].below, id >= below { return nil }
        return low - 1
    }

    // MARK: - Reading

    /// Returns the records that are left out: those that changed since the revision, and those that
    /// changed and are not in the log yet.
    private func changedRecords(limit: Int) throws(PostgresError) -> Set<RecordID> {
        let rows = try connection.query(
            """
            (SELECT id FROM _martlet.records WHERE revision > $2 AND type = $1 LIMIT $3) \
            UNION ALL (SELECT id FROM _martlet.foreign_changes WHERE type = $1 LIMIT $3)
            """,
            [.integer(form.table.number), .integer(revision), .integer(Int64(limit) + 1)])
        var ids: Set<RecordID> = []
        for row in 0..<rows.count {
            if let id = form.id(stored: try rows.text(row, 0)) { ids.insert(id) }
        }
        return ids
    }

    /// Adds up the hashes of the records that exist and are not left out.
    private mutating func scan(
        _ ranges: [CheckedRange], from: RecordID?, below: RecordID?, without left: Set<RecordID>
    ) throws(PostgresError) {
        let columns = hashed.compactMap { form.column($0) }.map {
            ", \($0.selected(as: "t.\($0.sqlName)"))"
        }
        // Each type has one name, because a FETCH is prepared with the columns of its cursor.
        let cursor = "martlet_check_\(form.table.number)"
        try connection.execute(
            """
            DECLARE \(cursor) NO SCROLL CURSOR FOR SELECT t.\(form.key), r.revision\
            \(columns.joined()) \(joined) WHERE \(Self.condition(form, from, below))
            """)
        while true {
            let page = try connection.query("FETCH \(Self.atOnce) FROM \(cursor)")
            for row in 0..<page.count {
                let id = try form.id(page, row, 0)
                guard !left.contains(id), let rangeIndex = Self.rangeIndex(of: id, in: ranges)
                else {
                    continue
                }
                try add(id, page, row, to: rangeIndex)
            }
            guard page.count == Self.atOnce else { break }
        }
        try connection.execute("CLOSE \(cursor)")
    }

    private mutating func add(
        _ id: RecordID, _ page: PostgresRows, _ row: Int, to rangeIndex: Int
    ) throws(PostgresError) {
        var values: [Value] = []
        values.reserveCapacity(hashed.count)
        let attributes: Attributes
        do throws(PostgresError) {
            for (index, name) in hashed.enumerated() {
                guard let column = form.column(name) else { continue }
                values.append(try column.value(of: page, row, index + 2))
            }
            attributes = Attributes(names: hashed, values: values)
            guard !attributes.exceeds(Limits.rowBytes) else {
                throw PostgresError(.invalidValue, UnsendableValue.ofLargeRow.reason)
            }
        } catch {
            guard error.isUnsendable else { throw error }
            // No device can have received it.
            unsendable.note(form.type.name, id, error.message)
            if changed[rangeIndex].count < Limits.checkLeftOut { changed[rangeIndex].append(id) }
            return
        }
        hashes[rangeIndex].add(row: hasher.hash(id, attributes))
        hashes[rangeIndex].add(mark: hasher.mark(id, try page.integer(row, 1)))
    }

    /// The rows and their marks. A row without a mark was never in the log, so no device has it.
    private var joined: String {
        """
        FROM \(form.table.sqlName) AS t JOIN _martlet.records AS r \
        ON r.type = \(form.table.number) AND r.id = t.\(form.key)::text AND NOT r.deleted
        """
    }

    /// Returns the condition for keys in a range. Numbers are compared by size and texts by their
    /// bytes, whatever collation the column has.
    private static func condition(
        _ form: TableFormat, _ from: RecordID?, _ below: RecordID?
    ) -> String {
        func compared(_ sign: String, _ id: RecordID?) -> String? {
            switch id {
            case nil: nil
            case .integer(let number): "t.\(form.key) \(sign) \(number)"
            case .text(let text):
                if form.table.key.form == .uuid, TextFormat.isUUID(text) {
                    "t.\(form.key) \(sign) '\(text)'::uuid"
                } else {
                    "t.\(form.key)::text COLLATE \"C\" \(sign) \(literal(text))"
                }
            }
        }
        let terms = [compared(">=", from), compared("<", below)].compactMap(\.self)
        return terms.isEmpty ? "true" : terms.joined(separator: " AND ")
    }

    private static func literal(_ text: String) -> String {
        // PostgreSQL has no text with NUL, so no key equals this one. Cutting it off does not
        // change the order.
        SQLName.literal(String(text.prefix { $0 != "\0" }))
    }

    // MARK: - Rows

    private func rows(
        _ range: CheckedRange, without changed: [RecordID], _ budget: inout Budget
    ) throws(PostgresError) -> CheckedRows {
        let order =
            form.type.keyKind == .text
            ? "t.\(form.key)::text COLLATE \"C\"" : "t.\(form.key)"
        // The statement is not prepared, because there are as many statements as ranges.
        let cursor = "martlet_rows_\(form.table.number)"
        try connection.execute(
            """
            DECLARE \(cursor) NO SCROLL CURSOR FOR SELECT \(form.all()), r.revision \(joined) \
            WHERE \(Self.condition(form, range.from, range.below)) \
            ORDER BY \(order) LIMIT \(budget.rows + changed.count + 1)
            """)
        defer { try? connection.execute("CLOSE \(cursor)") }
        var found = CheckedRows(rows: [], without: changed)
        let left = Set(changed)
        let last = form.table.columns.count + 1
        while true {
            let page = try connection.query("FETCH 200 FROM \(cursor)")
            for row in 0..<page.count {
                let id = try form.id(page, row, 0)
                guard !left.contains(id) else { continue }
                guard budget.rows > 0, budget.bytes > 0 else {
                    found.next = id
                    return found
                }
                let attributes: Attributes
                do throws(PostgresError) {
                    attributes = try form.attributes(page, row)
                } catch {
                    guard error.isUnsendable else { throw error }
                    found.without.append(id)
                    continue
                }
                budget.rows -= 1
                budget.bytes -= attributes.wireByteCount
                found.rows.append(
                    RecordEntry(
                        id: id, revision: try page.integer(row, last), attributes: attributes))
            }
            guard page.count == 200 else { return found }
        }
    }
}
