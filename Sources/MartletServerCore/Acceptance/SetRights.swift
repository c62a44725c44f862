package import MartletModel
package import MartletRules

/// The judgement on a set by the policies of the data set.
///
/// `JudgedSet` says how. Triggers, and ON DELETE actions that the set does not name, need no right, as
/// in PostgreSQL.
package struct SetRights: Sendable {
    private let rights: RowRights
    /// Whether an earlier set of the request was refused and may yet be accepted. What it changes may
    /// give the right that is missing now.
    private let followsRetryable: Bool
    /// The set's changes, with the rows of the named and the affected records before it.
    private var set = JudgedSet()
    private var former = JudgedSet.Former()
    /// Why the set is not allowed, as far as the state before it tells.
    package private(set) var refusal: Refusal?

    /// Judges the named records in the present state.
    ///
    /// - Complexity: O(*n*) in the number of records, each with the look-ups of its policies.
    package init<Fault: Error>(
        _ rights: RowRights, _ plan: SetPlan, _ facts: SetFacts, followsRetryable: Bool,
        read: RowReading<Fault>
    ) throws(Fault) {
        self.followsRetryable = followsRetryable
        self.rights = rights
        set.creates = plan.creates.map { JudgedSet.Change($0.address, $0.attributes) }
        set.updates = plan.updates.map {
            JudgedSet.Change(facts.permanentAddress(of: $0.address), $0.attributes)
        }
        set.deletes = plan.deletes.map { JudgedSet.Change(facts.permanentAddress(of: $0.address)) }
        let named = (set.updates + set.deletes).map(\.address)
        set.before = try RowRights.rows(of: named + facts.affected.map(\.address), read)
        let keys = plan.creates.map(\.address).filter { address in
            !address.id.isTemporary && facts.rows[address].map { !$0.isDeleted } ?? false
        }
        set.taken = try RowRights.rows(of: keys, read)
        let set = set
        former = try RowLookups.working(read) { rows in
            let evaluator = rights.evaluator(over: rows)
            var former = try set.former(by: evaluator)
            for row in facts.affected {
                let (address, type) = (row.address, row.address.type)
                if let old = set.before[address], try evaluator.maySelect(old, of: type) {
                    continue
                }
                former.hidden.insert(address)
            }
            return former
        }
        let isUnknown = named.contains { former.hidden.contains($0) }
        refusal =
            followsRetryable && isUnknown
            ? Self.waiting : former.finding.map { refusal(for: $0) }
    }

    /// Returns facts as the principal may know them.
    package func visibleFacts(of facts: SetFacts) -> SetFacts {
        guard !former.hidden.isEmpty else { return facts }
        var visible = facts
        for address in former.hidden { visible.rows[address] = nil }
        visible.affected.removeAll { former.hidden.contains($0.address) }
        return visible
    }

    /// Returns why the set is not allowed, once it is carried out; nil if it is.
    ///
    /// - Parameters:
    ///   - assigned: The permanent ids of the records that the set creates.
    ///   - read: Reads the rows as the set has left them.
    package func refusal<Fault: Error>(
        assigned: [RecordAddress: RecordID], read: RowReading<Fault>
    ) throws(Fault) -> Refusal? {
        let set = set(assigned)
        let written = (set.creates + set.updates).map(\.address)
        let after = try RowRights.rows(of: written, read)
        return try refusal(set, after, read) { rows, address, _ in rows.restore(address) }
    }

    /// Returns why a set is not allowed that the tables do not take; nil if it is.
    ///
    /// - Parameters:
    ///   - after: The rows that the set would leave. `expectedRow` returns one.
    ///   - read: Reads the rows as they are without the set.
    package func refusal<Fault: Error>(
        assigned: [RecordAddress: RecordID], leaving after: [RecordAddress: RuleRow],
        read: RowReading<Fault>
    ) throws(Fault) -> Refusal? {
        try refusal(set(assigned), after, read) { rows, address, row in
            rows.replace(address, by: row)
        }
    }

    /// Returns a row that the set would leave: the one before it, with the values that the set writes.
    ///
    /// - Parameter attributes: These values, with permanent ids.
    package func expectedRow(_ address: RecordAddress, _ attributes: Attributes) -> RuleRow {
        let type = rights.schema.types[address.type]
        var row = set.before[address] ?? [address.id.value] + type.attributes.map { _ in .null }
        for (name, value) in zip(attributes.names, attributes.values) {
            if let index = type.index(ofAttribute: name) { row[index + 1] = value }
        }
        return row
    }

    /// Returns the changes with the permanent ids of new records.
    private func set(_ assigned: [RecordAddress: RecordID]) -> JudgedSet {
        var set = set
        set.creates = set.creates.map { create in
            let (address, type) = (create.address, create.address.type)
            return JudgedSet.Change(
                RecordAddress(type, assigned[address] ?? address.id), create.attributes)
        }
        return set
    }

    /// Judges the rows that the set leaves.
    ///
    /// - Parameter reveal: Lets later conditions find a row that was judged.
    private func refusal<Fault: Error>(
        _ set: JudgedSet, _ after: [RecordAddress: RuleRow], _ read: RowReading<Fault>,
        _ reveal: (RowLookups, RecordAddress, RuleRow) -> Void
    ) throws(Fault) -> Refusal? {
        guard !set.creates.isEmpty || !set.updates.isEmpty else { return nil }
        return try RowLookups.working(read) { rows in
            let evaluator = rights.evaluator(over: rows)
            return try set.finding(after: former, after, by: evaluator, over: rows) {
                reveal(rows, $0, $1)
            }.map { refusal(for: $0) }
        }
    }

    // MARK: - Words

    private static let waiting = Refusal(
        .dependency, "the right to it may depend on a set before it, which is not decided yet",
        retryAfter: Acceptance.dependencyWaitSeconds)

    private func refusal(for found: JudgedSet.Finding) -> Refusal {
        if followsRetryable { return Self.waiting }
        let type = rights.schema.types[found.address.type].name
        return Refusal(.permission, found.refusal.clause(found.command, type: type))
    }
}
