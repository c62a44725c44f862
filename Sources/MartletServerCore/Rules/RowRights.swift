package import MartletModel
internal import MartletProtocol
package import MartletRules

/// The rights of a principal to rows, by the policies of the data set, on one day.
package struct RowRights: Sendable {
    let program: RulesProgram
    let viewer: Viewer

    /// The milliseconds of a day.
    private static let day: Int64 = 86_400_000

    /// Makes the rights of a principal.
    ///
    /// - Parameter now: Milliseconds since 1970. The day is the one of UTC.
    package init(_ program: RulesProgram, of principal: Principal, now: Int64) {
        self.program = program
        viewer = Viewer(
            user: principal.user, roles: Set(principal.roles), claims: principal.claims,
            today: now / Self.day - (now % Self.day < 0 ? 1 : 0))
    }

    /// The schema of the data set.
    var schema: Schema { program.schema }

    /// Returns the truth of a refused set as the principal may see it. A record that he may not see is
    /// one that does not exist: it is listed as deleted if the set names it, and else not at all.
    func visible(
        _ truth: [TypeChanges], of set: ChangeSet, over rows: RowLookups
    ) throws -> [TypeChanges] {
        let evaluator = evaluator(over: rows)
        return try truth.compactMap { changes in
            guard let index = schema.index(of: changes.name) else { return nil }
            let named = set.types.filter { $0.name == changes.name }
                .reduce(into: Set()) { $0.formUnion($1.create + $1.update + $1.delete) }
            var visible = changes
            visible.update = []
            visible.entries = []
            for entry in changes.entries {
                let values = schema.types[index].attributes.map {
                    entry.attributes[$0.name] ?? .null
                }
                if try evaluator.maySelect([entry.id.value] + values, of: index) {
                    visible.update.append(entry.id)
                    visible.entries.append(entry)
                } else if named.contains(entry.oldID ?? entry.id) {
                    visible.delete.append(entry.id)
                }
            }
            return visible.update.isEmpty && visible.delete.isEmpty ? nil : visible
        }
    }

    /// Returns what judges rows by these rights.
    package func evaluator(over rows: any RuleRows) -> RuleEvaluator {
        RuleEvaluator(program, for: viewer, over: rows)
    }
}

/// Reads the rows of a type whose column has one of the values, or all rows if `values` is nil. It
/// may return more rows. Column 0 is the key.
package typealias RowReading<Fault: Error> = (
    _ type: Int, _ column: Int, _ values: [Value]?
) throws(Fault) -> [RuleRow]

/// The rows that conditions read from a storage. Each look-up is done once.
package final class RowLookups: RuleRows {
    /// The rows of a type that were looked up: those with a value of a column, or all.
    struct Lookup: Hashable {
        let type: Int
        let column: Int
        let value: Value?
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
    var done: some Collection<Lookup> { known.keys }

    /// Calls `body` with look-ups. What it throws comes from reading.
    static func working<Fault: Error, Result>(
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
    ///
    /// - Precondition: Nothing was looked up yet.
    package func replace(_ address: RecordAddress, by row: RuleRow?) {
        replaced[address.type, default: [:]][address.id] = .some(row)
        generation += 1
    }

    /// Lets conditions find a record as the storage has it.
    func restore(_ address: RecordAddress) {
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
