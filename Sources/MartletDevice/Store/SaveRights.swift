internal import MartletModel
internal import MartletProtocol
internal import MartletRules
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The rights of the device's user to change records, by the rules that the device knows.
///
/// The tables have the records that the user may see, so the conditions of policies find on the device
/// the rows that they find on the server. The server judges again, by its own state.
struct SaveRights {
    private let store: LocalStore
    let program: RulesProgram
    let evaluator: (RowLookups) -> RuleEvaluator

    /// Reads the rights from a file. Nil if every change may be tried: there are no rules, or they do
    /// not fit the file's tables, or the tables lack records or values of the server.
    /// - Parameter now: Milliseconds since 1970.
    init?(_ store: LocalStore, now: Int64) throws {
        guard let known = try KnownRules.read(from: store), let program = known.program else {
            return nil
        }
        let standing = try Standing(store)
        guard standing.missing == nil, standing.refetching == nil,
            try store.connection.integer("SELECT 1 FROM martlet_quarantine LIMIT 1") == nil
        else { return nil }
        self.store = store
        self.program = program
        evaluator = known.evaluator(program, now: now)
    }

    /// Returns look-ups in the file's tables.
    func lookups() -> RowLookups {
        RowLookups { [store] in try store.tables.ruleRows(of: $0, where: $1, isAmong: $2) }
    }

    /// Checks the changes of a save, whose transaction is open.
    /// - Throws: `StoreError` `.permission` if the rules do not allow one of them.
    /// - Complexity: O(*n*) in the changes, each with the look-ups of its policies.
    func check(_ changes: [RecordChange]) throws {
        // Nobody knows the earlier values of generated columns.
        guard !changes.contains(where: { $0.operation != .create && hasGenerated($0.type) }) else {
            return
        }
        let (set, after) = try set(of: changes)
        let earlier = lookups()
        set.undo(in: earlier)
        let former = try set.former(by: evaluator(earlier))
        if let hidden = former.hidden.first {
            throw refusal(of: hidden, "they do not show you this record of “\(name(of: hidden))”")
        }
        let later = lookups()
        let found =
            try former.finding
            ?? set.finding(after: former, after, by: evaluator(later), over: later) { address, _ in
                later.restore(address)
            }
        guard let found else { return }
        var error = refusal(
            of: found.address, found.refusal.clause(found.command, type: name(of: found.address)))
        if case .restricted(let policy) = found.refusal { error.policy = policy }
        throw error
    }

    private func name(of address: RecordAddress) -> String { store.schema.types[address.type].name }

    private func refusal(of address: RecordAddress, _ clause: String) -> StoreError {
        var error = StoreError(
            .permission,
            "The rules do not allow this: \(clause). The change set was not saved. Leave the change out,"
                + " or ask for the right to make it.")
        error.table = name(of: address)
        error.key = address.id
        return error
    }

    private func hasGenerated(_ type: Int) -> Bool {
        store.schema.types[type].attributes.contains(where: \.isGenerated)
    }

    /// Returns changes as the server judges them: new records in the order in which they are sent.
    /// - Returns: The set, and the rows that it leaves.
    private func set(
        of changes: [RecordChange]
    ) throws -> (set: JudgedSet, after: [RecordAddress: RuleRow]) {
        var set = JudgedSet()
        var rows: [RecordAddress: RuleRow] = [:]
        for change in changes.sorted(by: isSentBefore) {
            let address = RecordAddress(change.type, change.id)
            let judged = JudgedSet.Change(address, change.after)
            switch change.operation {
            case .create: set.creates.append(judged)
            case .update: set.updates.append(judged)
            case .delete: set.deletes.append(judged)
            }
            if let before = change.before {
                let attributes = store.schema.types[change.type].attributes
                set.before[address] =
                    [change.id.value] + attributes.map { before[$0.name] ?? .null }
            }
            if change.operation != .delete,
                let after = try store.tables[change.type].read(change.id)
            {
                rows[address] = [change.id.value] + after.values
            }
        }
        return (set, rows)
    }

    private func isSentBefore(_ one: RecordChange, _ other: RecordChange) -> Bool {
        if one.type != other.type { return store.numbers[one.type] < store.numbers[other.type] }
        switch (one.id, other.id) {
        case (.integer(let one), .integer(let other)): return one.magnitude < other.magnitude
        case (.text(let one), .text(let other)):
            return one.utf8.lexicographicallyPrecedes(other.utf8)
        default: return false
        }
    }
}

@available(*, unavailable)
extension SaveRights: Sendable {}
