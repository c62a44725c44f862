package import MartletModel

/// The changes of a set, as policies judge them: as PostgreSQL would in a transaction of all its
/// INSERTs, then its UPDATEs, then its DELETEs.
///
/// The records that a set changes or deletes are judged in the state before it. Its new and changed
/// rows are judged once they are written: a condition finds the rows that come earlier, and neither the
/// row itself nor later ones. So no set gives its author a right that the set itself needs.
///
/// A device sends the effects of ON DELETE actions like other changes. As in PostgreSQL they need no
/// right, apart from that to see the record.
package struct JudgedSet: Sendable {
    /// A change of one record.
    package struct Change: Sendable {
        package let address: RecordAddress
        /// The values that it writes; none for a delete.
        package let attributes: Attributes

        package init(_ address: RecordAddress, _ attributes: Attributes = Attributes()) {
            self.address = address
            self.attributes = attributes
        }
    }

    /// A change that is not allowed.
    package struct Finding: Hashable, Sendable {
        package let address: RecordAddress
        /// The command that is not allowed; nil if only the row is not that an UPDATE has made.
        package let command: PolicyCommand?
        package let refusal: RuleRefusal
    }

    /// The judgement in the state before a set.
    package struct Former: Sendable {
        /// The records that somebody may not see. For him they do not exist.
        package var hidden: Set<RecordAddress> = []
        /// The first of the others that he may not change.
        package var finding: Finding?
        /// The updates that only do with references what ON DELETE actions do if the set deletes their records.
        fileprivate var actions: Set<RecordAddress> = []

        package init() {}
    }

    package var creates: [Change] = []
    package var updates: [Change] = []
    package var deletes: [Change] = []
    /// The rows before the set of the records that it changes or deletes.
    package var before: [RecordAddress: RuleRow] = [:]
    /// The rows before the set that have the text keys of its new records.
    package var taken: [RecordAddress: RuleRow] = [:]

    package init() {}

    /// Judges the records in the state before the set.
    ///
    /// - Throws: What the storage throws.
    /// - Complexity: O(*n*) in the changes, each with the look-ups of its policies.
    package func former(by evaluator: RuleEvaluator) throws -> Former {
        var former = Former()
        let deleted = try deleted(by: evaluator, &former)
        for change in updates {
            guard let old = try shown(change, evaluator, &former) else { continue }
            if deleted.change(change.attributes, of: old, change.address.type) {
                former.actions.insert(change.address)
            } else if former.finding == nil {
                former.finding = try evaluator.refusalToUpdate(
                    old, columns: change.attributes.names, of: change.address.type
                ).map { Finding(address: change.address, command: .update, refusal: $0) }
            }
        }
        for change in creates where former.finding == nil {
            let type = change.address.type
            former.finding = evaluator.lackedPrivilege(
                .insert, evaluator.columnsToInsert(change.attributes, of: type), of: type
            ).map { Finding(address: change.address, command: .insert, refusal: $0) }
        }
        return former
    }

    /// Returns the record before the set; nil if it is hidden.
    private func shown(
        _ change: Change, _ evaluator: RuleEvaluator, _ former: inout Former
    ) throws -> RuleRow? {
        if let old = before[change.address],
            try evaluator.maySelect(old, of: change.address.type)
        {
            return old
        }
        former.hidden.insert(change.address)
        return nil
    }

    /// Returns the records that the set may delete.
    private func deleted(
        by evaluator: RuleEvaluator, _ former: inout Former
    ) throws -> DeletedRecords {
        var deleted = DeletedRecords(evaluator.program.schema)
        var refused: [(row: RuleRow, finding: Finding)] = []
        for change in deletes {
            guard let old = try shown(change, evaluator, &former) else { continue }
            if let refusal = try evaluator.refusalToDelete(old, of: change.address.type) {
                refused.append(
                    (old, Finding(address: change.address, command: .delete, refusal: refusal)))
            } else {
                deleted.insert(change.address)
            }
        }
        // Each round finds those that are deleted with those of the round before.
        while true {
            let count = refused.count
            refused.removeAll { row, finding in
                guard deleted.remove(row, finding.address.type) else { return false }
                deleted.insert(finding.address)
                return true
            }
            if refused.count == count { break }
        }
        former.finding = refused.first?.finding
        return deleted
    }

    /// Returns the first new or changed row that somebody may not leave; nil if there is none.
    ///
    /// - Parameters:
    ///   - former: The judgement in the state before.
    ///   - after: The rows that the set leaves.
    ///   - rows: The look-ups of the evaluator; nothing was looked up yet.
    ///   - reveal: Lets later conditions find a row that was judged.
    /// - Throws: What the storage throws.
    /// - Complexity: As `former`.
    package func finding(
        after former: Former, _ after: [RecordAddress: RuleRow], by evaluator: RuleEvaluator,
        over rows: RowLookups, reveal: (RecordAddress, RuleRow) -> Void
    ) throws -> Finding? {
        undo(in: rows)
        let schema = evaluator.program.schema
        let deleted = Set(deletes.map(\.address))
        func written(_ change: Change) -> RuleRow? {
            after[change.address].map { self.written($0, change, schema, deleted) }
        }
        for create in creates {
            let address = create.address
            guard let row = written(create) else { continue }
            let columns = evaluator.columnsToInsert(create.attributes, of: address.type)
            if let found = try evaluator.refusalToInsert(row, columns: columns, of: address.type) {
                return Finding(address: address, command: .insert, refusal: found)
            }
            reveal(address, row)
        }
        for update in updates {
            guard let row = written(update) else { continue }
            if !former.actions.contains(update.address),
                let found = try evaluator.refusalToLeave(row, of: update.address.type)
            {
                return Finding(address: update.address, command: nil, refusal: found)
            }
            reveal(update.address, row)
        }
        return nil
    }

    /// Returns a row as it was written, before ON DELETE actions of the set emptied references in it.
    private func written(
        _ row: RuleRow, _ change: Change, _ schema: Schema, _ deleted: Set<RecordAddress>
    ) -> RuleRow {
        guard !deleted.isEmpty else { return row }
        var row = row
        let type = schema.types[change.address.type]
        for reference in type.references
        where reference.onDelete == .setNull || reference.onDelete == .setDefault {
            guard let column = type.index(ofAttribute: reference.attribute),
                let target = schema.index(of: reference.target),
                let value = change.attributes[reference.attribute]
                    ?? before[change.address]?[column + 1],
                let id = RecordID(value), deleted.contains(RecordAddress(target, id))
            else { continue }
            row[column + 1] = value
        }
        return row
    }

    /// Lets look-ups find all records of the set as they were before it.
    package func undo(in rows: RowLookups) {
        for create in creates { rows.replace(create.address, by: taken[create.address]) }
        for (address, row) in before { rows.replace(address, by: row) }
    }
}

/// Records that a set may delete, and what ON DELETE actions do with them.
private struct DeletedRecords {
    private let schema: Schema
    private var records: Set<RecordAddress> = []

    init(_ schema: Schema) { self.schema = schema }

    mutating func insert(_ address: RecordAddress) { records.insert(address) }

    /// Returns whether an action deletes a row with these records.
    func remove(_ row: RuleRow, _ type: Int) -> Bool {
        schema.types[type].references.contains {
            $0.onDelete == .cascade && isHeld($0, by: row, type)
        }
    }

    /// Returns whether a change is only that of actions that empty a row's references to these records, or
    /// give them their default.
    func change(_ attributes: Attributes, of row: RuleRow, _ type: Int) -> Bool {
        guard !records.isEmpty, !attributes.isEmpty else { return false }
        let type = (number: type, model: schema.types[type])
        return zip(attributes.names, attributes.values).allSatisfy { name, value in
            type.model.references.contains {
                guard $0.attribute == name else { return false }
                let isAction =
                    switch $0.onDelete {
                    case .setNull: value == .null
                    case .setDefault: type.model[attribute: name]?.isDefault(value) == true
                    case .noAction, .restrict, .cascade: false
                    }
                return isAction && isHeld($0, by: row, type.number)
            }
        }
    }

    /// Returns whether a row refers to one of the records.
    private func isHeld(_ reference: Reference, by row: RuleRow, _ type: Int) -> Bool {
        guard let target = schema.index(of: reference.target),
            let column = schema.types[type].index(ofAttribute: reference.attribute)
        else { return false }
        return RecordID(row[column + 1]).map { records.contains(RecordAddress(target, $0)) }
            ?? false
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
