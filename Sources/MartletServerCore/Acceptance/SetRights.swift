package import MartletModel
package import MartletRules

/// The judgement on a set by the policies of the data set.
///
/// The records that a set names are judged in the state before the set. Its new and changed rows are
/// judged once they are written, as PostgreSQL would in a transaction of all its INSERTs, then its
/// UPDATEs, then its DELETEs: a condition finds the rows that come earlier in this order, and neither
/// the row itself nor later ones. So no set gives its author a right that the set itself needs.
///
/// ON DELETE actions and triggers need no right, as in PostgreSQL.
package struct SetRights: Sendable {
    private let rights: RowRights
    private let plan: SetPlan
    private let facts: SetFacts
    /// Whether an earlier set of the request was refused and may yet be accepted. What it changes may
    /// give the right that is missing now.
    private let followsRetryable: Bool
    /// The rows of the named and the affected records before the set.
    private var before: [RecordAddress: RuleRow] = [:]
    /// The records of the facts that the principal may not see. For him they do not exist.
    private var hidden: Set<RecordAddress> = []
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
        self.plan = plan
        self.facts = facts
        let named = (plan.updates + plan.deletes).map { facts.permanentAddress(of: $0.address) }
        let found = try Self.rows(of: named + facts.affected.map(\.address), read)
        before = found
        (hidden, refusal) = try RowLookups.working(read) { [self] rows in
            try judge(rights.evaluator(over: rows))
        }
    }

    /// Returns facts as the principal may know them.
    package func visibleFacts(of facts: SetFacts) -> SetFacts {
        guard !hidden.isEmpty else { return facts }
        var visible = facts
        for address in hidden { visible.rows[address] = nil }
        visible.affected.removeAll { hidden.contains($0.address) }
        return visible
    }

    private func judge(
        _ evaluator: RuleEvaluator
    ) throws -> (hidden: Set<RecordAddress>, refusal: Refusal?) {
        var (hidden, refusal): (Set<RecordAddress>, Refusal?) = ([], nil)
        for row in facts.affected
        where try !evaluator.sees(before[row.address], row.address.type) {
            hidden.insert(row.address)
        }
        for (changes, command) in [(plan.updates, PolicyCommand.update), (plan.deletes, .delete)] {
            for change in changes {
                let address = facts.permanentAddress(of: change.address)
                guard let row = before[address], try evaluator.sees(row, address.type) else {
                    hidden.insert(address)
                    if followsRetryable { refusal = Self.waiting }
                    continue
                }
                guard refusal == nil else { continue }
                let found =
                    command == .delete
                    ? try evaluator.refusalToDelete(row, of: address.type)
                    : try evaluator.refusalToUpdate(
                        row, columns: change.attributes.names, of: address.type)
                refusal = found.map { self.refusal(for: $0, command, address.type) }
            }
        }
        for create in plan.creates where refusal == nil {
            refusal = evaluator.lackedPrivilege(
                .insert, create.attributes.names, of: create.type
            ).map { self.refusal(for: $0, .insert, create.type) }
        }
        return (hidden, refusal)
    }

    /// Returns why the set is not allowed, once it is carried out; nil if it is.
    ///
    /// - Parameters:
    ///   - assigned: The permanent ids of the records that the set creates.
    ///   - read: Reads the rows as the set has left them.
    package func refusal<Fault: Error>(
        assigned: [RecordAddress: RecordID], read: RowReading<Fault>
    ) throws(Fault) -> Refusal? {
        let (created, changed) = addresses(assigned)
        guard !created.isEmpty || !changed.isEmpty else { return nil }
        let after = try Self.rows(of: created + changed, read)
        return try refusal(created, changed, after, read) { rows, address, _ in
            rows.restore(address)
        }
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
        let (created, changed) = addresses(assigned)
        guard !created.isEmpty || !changed.isEmpty else { return nil }
        return try refusal(created, changed, after, read) { rows, address, row in
            rows.replace(address, by: row)
        }
    }

    /// Returns a row that the set would leave: the one before it, with the values that the set writes.
    ///
    /// - Parameter attributes: These values, with permanent ids.
    package func expectedRow(_ address: RecordAddress, _ attributes: Attributes) -> RuleRow {
        let type = rights.schema.types[address.type]
        var row = before[address] ?? [address.id.value] + type.attributes.map { _ in .null }
        for (name, value) in zip(attributes.names, attributes.values) {
            if let index = type.index(ofAttribute: name) { row[index + 1] = value }
        }
        return row
    }

    private func addresses(
        _ assigned: [RecordAddress: RecordID]
    ) -> (created: [RecordAddress], changed: [RecordAddress]) {
        (
            plan.creates.map { RecordAddress($0.type, assigned[$0.address] ?? $0.id) },
            plan.updates.map { facts.permanentAddress(of: $0.address) }
        )
    }

    /// Judges the rows that the set leaves.
    ///
    /// - Parameter reveal: Lets later conditions find a row that was judged.
    private func refusal<Fault: Error>(
        _ created: [RecordAddress], _ changed: [RecordAddress], _ after: [RecordAddress: RuleRow],
        _ read: RowReading<Fault>,
        _ reveal: (RowLookups, RecordAddress, RuleRow) -> Void
    ) throws(Fault) -> Refusal? {
        try RowLookups.working(read) { rows in
            for address in created { rows.replace(address, by: nil) }
            for (address, row) in before { rows.replace(address, by: row) }
            let evaluator = rights.evaluator(over: rows)
            for (create, address) in zip(plan.creates, created) {
                guard let row = after[address] else { continue }
                let names = create.attributes.names
                if let found = try evaluator.refusalToInsert(row, columns: names, of: address.type)
                {
                    return refusal(for: found, .insert, address.type)
                }
                reveal(rows, address, row)
            }
            for address in changed {
                guard let row = after[address] else { continue }
                if let found = try evaluator.refusalToLeave(row, of: address.type) {
                    return refusal(for: found, nil, address.type)
                }
                reveal(rows, address, row)
            }
            return nil
        }
    }

    // MARK: - Rows

    private static func rows<Fault: Error>(
        of addresses: [RecordAddress], _ read: RowReading<Fault>
    ) throws(Fault) -> [RecordAddress: RuleRow] {
        var ids: [Int: [Value]] = [:]
        for address in addresses { ids[address.type, default: []].append(address.id.value) }
        var rows: [RecordAddress: RuleRow] = [:]
        for (type, values) in ids.sorted(by: { $0.key < $1.key }) {
            for row in try read(type, 0, values) { rows[RecordAddress(type, row)] = row }
        }
        return rows
    }

    // MARK: - Words

    private static let waiting = Refusal(
        .dependency, "the right to it may depend on a set before it, which is not decided yet",
        retryAfter: Acceptance.dependencyWaitSeconds)

    /// Returns the refusal of a set.
    ///
    /// - Parameter command: What the policies do not allow; nil if they do not allow the row that a
    ///   change made.
    private func refusal(
        for found: RuleRefusal, _ command: PolicyCommand?, _ type: Int
    ) -> Refusal {
        if followsRetryable { return Self.waiting }
        let name = "“\(rights.schema.types[type].name)”"
        let verb =
            switch command {
            case .insert: "create"
            case .delete: "delete"
            case .select, .update, nil: "update"
            }
        let row =
            command == .insert || command == nil
            ? "a record of \(name) like this" : "this record of \(name)"
        switch found {
        case .privilege(_, let columns) where columns.isEmpty:
            return Refusal(.permission, "you may not \(verb) records of \(name)")
        case .privilege(_, let columns):
            let list = columns.map { "“\($0)”" }.joined(separator: ", ")
            return Refusal(.permission, "you may not write \(list) of \(name)")
        case .unreadable(let read):
            return Refusal(
                .permission,
                "the policies of \(name) read “\(read)”, and you may not read records of “\(read)”")
        case .unpermitted:
            return Refusal(
                .permission, "no policy lets you \(command == nil ? "leave" : verb) \(row)")
        case .restricted(let policy):
            return Refusal(
                .permission,
                "the policy “\(policy)” does not let you \(command == nil ? "leave" : verb) \(row)")
        }
    }
}

extension RuleEvaluator {
    /// Returns whether the viewer may see a row; false for one that is not there.
    fileprivate func sees(_ row: RuleRow?, _ type: Int) throws -> Bool {
        try row.map { try maySelect($0, of: type) } ?? false
    }
}
