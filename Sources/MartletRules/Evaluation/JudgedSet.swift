package import MartletModel

/// The changes of a set, as policies judge them: as PostgreSQL would in a transaction of all its
/// INSERTs, then its UPDATEs, then its DELETEs.
///
/// The records that a set changes or deletes are judged in the state before it. Its new and changed
/// rows are judged once they are written: a condition finds the rows that come earlier, and neither the
/// row itself nor later ones. So no set gives its author a right that the set itself needs.
package struct JudgedSet: Sendable {
    /// A change of one record.
    package struct Change: Sendable {
        package let address: RecordAddress
        /// The columns that it writes.
        package let columns: [String]

        package init(_ address: RecordAddress, columns: [String] = []) {
            self.address = address
            self.columns = columns
        }
    }

    /// A change that is not allowed.
    package struct Finding: Hashable, Sendable {
        package let address: RecordAddress
        /// The command that is not allowed; nil if only the row is not that an UPDATE has made.
        package let command: PolicyCommand?
        /// The reason; nil if the record cannot be seen.
        package let refusal: RuleRefusal?
    }

    package var creates: [Change] = []
    package var updates: [Change] = []
    package var deletes: [Change] = []
    /// The rows before the set of the records that it changes or deletes.
    package var before: [RecordAddress: RuleRow] = [:]
    /// The rows that it has left of the records that it creates or changes.
    package var after: [RecordAddress: RuleRow] = [:]

    package init() {}

    /// Returns the first change that somebody may not make; nil if there is none.
    ///
    /// - Parameters:
    ///   - evaluator: Makes what judges over look-ups.
    ///   - rows: Makes look-ups in the rows as the set has left them.
    /// - Throws: What the storage throws.
    /// - Complexity: O(*n*) in the changes, each with the look-ups of its policies.
    package func finding(
        _ evaluator: (RowLookups) -> RuleEvaluator, over rows: () -> RowLookups
    ) throws -> Finding? {
        let former = rows()
        undo(in: former)
        let judge = evaluator(former)
        for change in updates {
            if let found = try finding(
                change, .update, judge,
                { old throws in
                    try judge.refusalToUpdate(old, columns: change.columns, of: change.address.type)
                })
            {
                return found
            }
        }
        for change in deletes {
            if let found = try finding(
                change, .delete, judge,
                { old throws in
                    try judge.refusalToDelete(old, of: change.address.type)
                })
            {
                return found
            }
        }
        return try findingAfterwards(evaluator, rows())
    }

    /// Lets look-ups find all records of the set as they were before it.
    private func undo(in rows: RowLookups) {
        for create in creates { rows.replace(create.address, by: nil) }
        for (address, row) in before { rows.replace(address, by: row) }
    }

    private func finding(
        _ change: Change, _ command: PolicyCommand, _ judge: RuleEvaluator,
        _ refusal: (RuleRow) throws -> RuleRefusal?
    ) throws -> Finding? {
        guard let old = before[change.address],
            try judge.maySelect(old, of: change.address.type)
        else { return Finding(address: change.address, command: command, refusal: nil) }
        return try refusal(old).map {
            Finding(address: change.address, command: command, refusal: $0)
        }
    }

    private func findingAfterwards(
        _ evaluator: (RowLookups) -> RuleEvaluator, _ rows: RowLookups
    ) throws -> Finding? {
        guard !creates.isEmpty || !updates.isEmpty else { return nil }
        undo(in: rows)
        let judge = evaluator(rows)
        for create in creates {
            guard let row = after[create.address] else { continue }
            let type = create.address.type
            if let found = try judge.refusalToInsert(row, columns: create.columns, of: type) {
                return Finding(address: create.address, command: .insert, refusal: found)
            }
            rows.restore(create.address)
        }
        for update in updates {
            guard let row = after[update.address] else { continue }
            if let found = try judge.refusalToLeave(row, of: update.address.type) {
                return Finding(address: update.address, command: nil, refusal: found)
            }
            rows.restore(update.address)
        }
        return nil
    }
}

extension RuleRefusal {
    /// Returns a clause that says what somebody may not do, such as “you may not create records of
    /// “teams””.
    /// - Parameters:
    ///   - command: The command that is not allowed; nil if only the row is not that an UPDATE has made.
    ///   - type: The type's name.
    package func clause(_ command: PolicyCommand?, type: String) -> String {
        let verb =
            switch command {
            case .insert: "create"
            case .delete: "delete"
            case .select, .update, nil: "update"
            }
        let row =
            command == .insert || command == nil
            ? "a record of “\(type)” like this" : "this record of “\(type)”"
        switch self {
        case .privilege(_, let columns) where columns.isEmpty:
            return "you may not \(verb) records of “\(type)”"
        case .privilege(_, let columns):
            let list = columns.map { "“\($0)”" }.joined(separator: ", ")
            return "you may not write \(list) of “\(type)”"
        case .unreadable(let read):
            return
                "the policies of “\(type)” read “\(read)”, and you may not read records of “\(read)”"
        case .unpermitted:
            return "no policy lets you \(command == nil ? "leave" : verb) \(row)"
        case .restricted(let policy):
            return
                "the policy “\(policy)” does not let you \(command == nil ? "leave" : verb) \(row)"
        }
    }
}
