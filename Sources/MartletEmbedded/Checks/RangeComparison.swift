import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Compares ranges of one type, in the caller's read transaction.
struct RangeComparison {
    /// The rows that all ranges of one answer may still have.
    struct Budget {
        var rows = Limits.checkRows
        /// The approximate bytes of rows.
        var bytes = Limits.checkBytes
        var leftOut = Limits.checkLeftOut
        /// The number of unsendable rows that are named. Further ones are found when their range
        /// has become small.
        var unsendable = Limits.checkLeftOut
    }

    let connection: Connection
    let type: EntityType
    let number: Int64
    let revision: Revision
    private var hasher: RowHasher
    private let table: String
    private let key: String
    private let unsendable: UnsendableRows

    init(
        connection: Connection, type: EntityType, number: Int64, attributes: [Attribute],
        revision: Revision, unsendable: UnsendableRows
    ) {
        self.unsendable = unsendable
        self.connection = connection
        self.type = type
        self.number = number
        self.revision = revision
        hasher = RowHasher(type: type, attributes: attributes, checksValues: true)
        table = SQLName.quoted(type.name)
        key = SQLName.quoted(type.key)
    }

    /// Returns the result for a range; nil if too much has changed since the device's revision.
    mutating func compare(
        _ asked: CheckedRange, _ budget: inout Budget
    ) throws(SQLiteError) -> RangeVerdict? {
        let range = KeyRange(asked)
        var hash = RangeHash()
        guard var changed = try addMarks(range, to: &hash, &budget) else { return nil }
        let unsendable = try addRows(range, to: &hash, &budget)
        try remove(changed, from: &hash)
        let known = Set(changed)
        for id in unsendable where !known.contains(id) {
            try removeMark(id, from: &hash)
            changed.append(id)
        }
        if changed.isEmpty, hash == asked.hash { return .equal }
        let isFew = min(hash.count, asked.hash.count) <= EmbeddedCheck.fewRows
        guard isFew, budget.rows > 0, budget.bytes > 0 else {
            return .hash(hash, without: changed)
        }
        return .rows(try rows(range, without: changed, &budget))
    }

    /// Adds the marks of the existing records that have not changed.
    ///
    /// - Returns: The records that have changed; nil if they are too many.
    private mutating func addMarks(
        _ range: KeyRange, to hash: inout RangeHash, _ budget: inout Budget
    ) throws(SQLiteError) -> [RecordID]? {
        let marks = try connection.statement(
            """
            SELECT id, revision, deleted FROM martlet_records
            WHERE type = ?1 AND \(range.ordered("id", type.keyKind))
            """)
        defer { marks.reset() }
        marks.bind(1, integer: number)
        range.bind(to: marks)
        var changed: [RecordID] = []
        while try marks.step() {
            let own = marks.integer(1)
            guard own <= revision else {
                budget.leftOut -= 1
                guard budget.leftOut >= 0 else { return nil }
                changed.append(try marks.recordID(0))
                continue
            }
            if marks.integer(2) == 0 {
                hash.add(mark: hasher.mark(marks, own))
            }
        }
        return changed
    }

    /// Adds the rows of a range.
    ///
    /// - Returns: The records whose rows were left out, because devices cannot receive them.
    private mutating func addRows(
        _ range: KeyRange, to hash: inout RangeHash, _ budget: inout Budget
    ) throws(SQLiteError) -> [RecordID] {
        let rows = try connection.statement(
            "SELECT \(hasher.columns) FROM \(table) WHERE \(range.ordered("\(table).\(key)", type.keyKind))"
        )
        defer { rows.reset() }
        range.bind(to: rows)
        var leftOut: [RecordID] = []
        while try rows.step() {
            let row = hasher.hash(rows)
            guard !hasher.isSendable, budget.unsendable > 0, let id = try? rows.recordID(0) else {
                hash.add(row: row)
                continue
            }
            unsendable.note(type.name, id, hasher.mismatch(rows))
            budget.unsendable -= 1
            leftOut.append(id)
        }
        return leftOut
    }

    private mutating func removeMark(
        _ id: RecordID, from hash: inout RangeHash
    ) throws(SQLiteError) {
        let find = try connection.statement(
            "SELECT revision FROM martlet_records WHERE type = ?1 AND id = ?2 AND deleted = 0")
        defer { find.reset() }
        find.bind(1, integer: number)
        find.bind(2, id)
        guard try find.step() else { return }
        var own = RangeHash()
        own.add(mark: hasher.mark(id, find.integer(0)))
        hash = hash - own
    }

    private mutating func remove(
        _ changed: [RecordID], from hash: inout RangeHash
    ) throws(SQLiteError) {
        guard !changed.isEmpty else { return }
        let find = try connection.statement(
            "SELECT \(hasher.columns) FROM \(table) WHERE \(table).\(key) = ?1")
        defer { find.reset() }
        for id in changed {
            find.rewind()
            find.bind(1, id)
            guard try find.step() else { continue }
            var own = RangeHash()
            own.add(row: hasher.hash(find))
            // A row that cannot be sent was not added.
            if hasher.isSendable { hash = hash - own }
        }
    }

    private func rows(
        _ range: KeyRange, without changed: [RecordID], _ budget: inout Budget
    ) throws(SQLiteError) -> CheckedRows {
        let names = type.attributes.map(\.name)
        let columns = ([type.key] + names).map { "t.\(SQLName.quoted($0))" }
        // CROSS keeps the order of the tables. The plus removes the key's affinity, which would
        // prevent the look-up of records: for each range, every record of the type would be read.
        let rows = try connection.statement(
            """
            SELECT \(columns.joined(separator: ", ")), r.revision FROM \(table) AS t
            CROSS JOIN martlet_records AS r ON r.type = ?1 AND r.id = +t.\(key) AND r.deleted = 0
            WHERE \(range.ordered("t.\(key)", type.keyKind))
            """)
        defer { rows.reset() }
        rows.bind(1, integer: number)
        range.bind(to: rows)
        var found = CheckedRows(rows: [], without: changed)
        let left = Set(changed)
        while try rows.step() {
            let id = try rows.recordID(0)
            guard !left.contains(id) else { continue }
            guard budget.rows > 0, budget.bytes > 0 else {
                found.next = id
                break
            }
            guard let attributes = attributes(of: rows, names) else {
                // No device can have received it, either.
                found.without.append(id)
                continue
            }
            budget.rows -= 1
            budget.bytes -= attributes.wireByteCount
            found.rows.append(
                RecordEntry(
                    id: id, revision: rows.integer(Int32(names.count) + 1), attributes: attributes)
            )
        }
        return found
    }

    /// Returns the row's values; nil if one of them cannot be sent. A computed value that cannot be sent counts as
    /// null, because each database computes its own.
    private func attributes(of row: Statement, _ names: [String]) -> Attributes? {
        var values: [Value] = []
        values.reserveCapacity(names.count)
        for (index, attribute) in type.attributes.enumerated() {
            let value = try? row.value(Int32(index + 1), kind: attribute.kind)
            guard let value = value ?? (attribute.isGenerated ? .null : nil) else { return nil }
            values.append(value)
        }
        let attributes = Attributes(names: names, values: values)
        return attributes.exceeds(Limits.rowBytes) ? nil : attributes
    }
}
