import MartletCore
import MartletProtocol
import SQLiteKit
import SQLiteRecords

/// Compares ranges of one type, in the caller's read transaction.
struct RangeComparison {
    /// What all ranges of one answer may still bring.
    struct Budget {
        var rows = Limits.checkRows
        /// Bytes of rows, about.
        var bytes = 1 << 20
        var leftOut = Limits.checkLeftOut
    }

    let connection: Connection
    let type: EntityType
    let number: Int64
    let revision: Revision
    private var hasher: RowHasher
    private let table: String
    private let key: String

    init(
        connection: Connection, type: EntityType, number: Int64, attributes: [Attribute],
        revision: Revision
    ) {
        self.connection = connection
        self.type = type
        self.number = number
        self.revision = revision
        hasher = RowHasher(type: type, attributes: attributes)
        table = SQLName.quoted(type.name)
        key = SQLName.quoted(type.key)
    }

    /// What is found in a range; nil where too much has changed since the revision asked about.
    mutating func compare(
        _ asked: CheckedRange, _ budget: inout Budget
    ) throws(SQLiteError) -> RangeVerdict? {
        let range = KeyRange(asked)
        var hash = RangeHash()
        guard let changed = try addMarks(range, to: &hash, &budget) else { return nil }
        try addRows(range, to: &hash)
        try remove(changed, from: &hash)
        if changed.isEmpty, hash == asked.hash { return .equal }
        let isFew = min(hash.count, asked.hash.count) <= EmbeddedCheck.fewRows
        guard isFew, budget.rows > 0, budget.bytes > 0 else {
            return .hash(hash, without: changed)
        }
        return .rows(try rows(range, without: changed, &budget))
    }

    /// Adds the marks of the records that are there and have not changed.
    /// - Returns: The records that have; nil where they are too many.
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
                hash.add(mark: hasher.mark(try marks.recordID(0), own))
            }
        }
        return changed
    }

    private mutating func addRows(
        _ range: KeyRange, to hash: inout RangeHash
    ) throws(SQLiteError) {
        let rows = try connection.statement(
            "SELECT \(hasher.columns) FROM \(table) WHERE \(range.ordered(key, type.keyKind))")
        defer { rows.reset() }
        range.bind(to: rows)
        while try rows.step() { hash.add(row: hasher.hash(rows)) }
    }

    private mutating func remove(
        _ changed: [RecordID], from hash: inout RangeHash
    ) throws(SQLiteError) {
        guard !changed.isEmpty else { return }
        let find = try connection.statement(
            "SELECT \(hasher.columns) FROM \(table) WHERE \(key) = ?1")
        defer { find.reset() }
        for id in changed {
            find.rewind()
            find.bind(1, id)
            guard try find.step() else { continue }
            var own = RangeHash()
            own.add(row: hasher.hash(find))
            hash = hash - own
        }
    }

    private func rows(
        _ range: KeyRange, without changed: [RecordID], _ budget: inout Budget
    ) throws(SQLiteError) -> CheckedRows {
        let names = type.attributes.map(\.name)
        let columns = ([type.key] + names).map { "t.\(SQLName.quoted($0))" }
        let rows = try connection.statement(
            """
            SELECT \(columns.joined(separator: ", ")), r.revision FROM \(table) AS t
            JOIN martlet_records AS r ON r.type = ?1 AND r.id = t.\(key) AND r.deleted = 0
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
                // No device can have been sent it either.
                found.without.append(id)
                continue
            }
            budget.rows -= 1
            budget.bytes -= 16 * names.count
            for case .text(let text) in attributes.values { budget.bytes -= text.utf8.count }
            found.rows.append(
                RecordEntry(
                    id: id, revision: rows.integer(Int32(names.count) + 1), attributes: attributes)
            )
        }
        return found
    }

    /// Nil where the row holds what no wire carries.
    private func attributes(of row: Statement, _ names: [String]) -> Attributes? {
        var values: [Value] = []
        values.reserveCapacity(names.count)
        for (index, attribute) in type.attributes.enumerated() {
            guard let value = try? row.value(Int32(index + 1), kind: attribute.kind) else {
                return nil
            }
            values.append(value)
        }
        return Attributes(names: names, values: values)
    }
}
