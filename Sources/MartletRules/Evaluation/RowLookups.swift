package import MartletModel

/// Reads the rows of a type whose column has one of the values, or all rows if `values` is nil. It
/// may return more rows. Column 0 is the key.
package typealias RowReading<Fault: Error> = (
    _ type: Int, _ column: Int, _ values: [Value]?
) throws(Fault) -> [RuleRow]

/// The rows that conditions read from a storage. Each look-up is done once.
package final class RowLookups: RuleRows {
    /// The rows of a type that were looked up: those with a value of a column, or all.
    package struct Lookup: Hashable {
        package let type: Int
        package let column: Int
        package let value: Value?
    }

    private struct Column: Hashable {
        let type: Int
        let column: Int
    }

    private let read: (Int, Int, [Value]?) throws -> [RuleRow]
    private var known: [Lookup: [RuleRow]] = [:]
    /// The records that conditions find in another state than the storage has, by type: with their rows,
    /// or nil for records that they do not find.
    private var replaced: [Int: [RecordID: RuleRow?]] = [:]
    /// The replaced records by the value of a column, once it was looked for.
    private var indexes: [Column: [Value: [RecordID]]] = [:]
    package private(set) var generation = 0

    /// Makes look-ups over the rows that a storage reads.
    package init(_ read: @escaping (Int, Int, [Value]?) throws -> [RuleRow]) {
        self.read = read
    }

    /// The look-ups that were done.
    package var done: some Collection<Lookup> { known.keys }

    /// Calls `body` with look-ups. What it throws comes from reading.
    package static func working<Fault: Error, Result>(
        _ read: RowReading<Fault>, _ body: (RowLookups) throws -> Result
    ) throws(Fault) -> Result {
        do {
            return try withoutActuallyEscaping(read) { read in try body(RowLookups(read)) }
        } catch let fault as Fault {
            throw fault
        } catch {
            preconditionFailure("only reading rows throws: \(error)")
        }
    }

    package func visit(
        _ type: Int, where match: (column: Int, value: Value)?,
        _ body: (RuleRow) throws -> Bool
    ) throws {
        let lookup = Lookup(type: type, column: match?.column ?? 0, value: match?.value)
        let rows = try known[lookup] ?? read(type, lookup.column, match.map { [$0.value] })
        known[lookup] = rows
        guard let others = replaced[type], !others.isEmpty else {
            for row in rows { guard try body(row) else { return } }
            return
        }
        for row in rows where others[RecordAddress(type, row).id] == nil {
            guard try body(row) else { return }
        }
        for id in match.map({ index(type, $0.column)[$0.value] ?? [] }) ?? Array(others.keys) {
            guard let row = others[id] ?? nil else { continue }
            guard try body(row) else { return }
        }
    }

    /// Lets conditions find a record with this row, or not at all.
    package func replace(_ address: RecordAddress, by row: RuleRow?) {
        replaced[address.type, default: [:]][address.id] = .some(row)
        indexes.removeAll()
        generation += 1
    }

    /// Lets conditions find a record as the storage has it.
    package func restore(_ address: RecordAddress) {
        replaced[address.type]?[address.id] = nil
        generation += 1
    }

    /// Returns the replaced records of a type by the value of a column. Some may have been restored.
    private func index(_ type: Int, _ column: Int) -> [Value: [RecordID]] {
        let key = Column(type: type, column: column)
        if let known = indexes[key] { return known }
        var index: [Value: [RecordID]] = [:]
        for (id, row) in replaced[type] ?? [:] {
            if let row { index[row[column], default: []].append(id) }
        }
        indexes[key] = index
        return index
    }
}

extension RecordAddress {
    /// The address of a row's record.
    package init(_ type: Int, _ row: RuleRow) {
        switch row[0] {
        case .integer(let number): self.init(type, .integer(number))
        case .text(let text): self.init(type, .text(text))
        default: preconditionFailure("a key is an integer or a text")
        }
    }
}

@available(*, unavailable)
extension RowLookups: Sendable {}
