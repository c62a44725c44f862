package import MartletModel

/// Rows that changed behind a set's statements: by ON DELETE actions, triggers, cascades.
extension SetEffects {
    /// What has to be noted of a record's facts.
    package enum Updated: Sendable {
        /// Nothing: the set's own deed says it, or there is none.
        case noted
        case deleted
        /// - Parameter isNew: Whether the record was not there before.
        case changed(isNew: Bool)
    }

    /// Brings the account of one record in line with its row.
    /// - Parameters:
    ///   - names: Attributes to list, beside the generated ones and those listed already; nil lists
    ///     all.
    ///   - facts: The record's facts as they are now.
    ///   - row: Reads the record's named attributes, nil names all; nil where it is not there.
    package mutating func update<Fault: Error>(
        _ address: RecordAddress, listing names: [String]?, facts: RowFacts?,
        of columns: TypeColumns, row: (_ names: [String]?) throws(Fault) -> Attributes?
    ) throws(Fault) -> Updated {
        let line = self[address]
        if line?.deed == .deleted {
            // A trigger may have kept the row, or put it back.
            guard let kept = try row(nil) else { return .noted }
            set(address, .updated, kept)
            return .changed(isNew: false)
        }
        let isWhole = line?.deed == .created || line == nil && facts?.isDeleted ?? true
        // No more than is listed: what else another program wrote may be nothing that can be sent.
        func listed(_ names: [String]) -> [String] {
            var listed = line?.attributes.names ?? []
            for name in names + columns.generated where !listed.contains(name) {
                listed.append(name)
            }
            return listed
        }
        guard let now = try row(isWhole ? nil : names.map { listed($0) }) else {
            guard let facts, !facts.isDeleted else { return .noted }
            set(address, .deleted)
            return .deleted
        }
        if line?.deed == .created {
            set(address, .created, columns.withoutNulls(now))
            return .noted
        }
        if line == nil {
            // A removal that did not come about: the set moved the record, or one above it.
            if let names, names.isEmpty { return .noted }
            if facts?.isDeleted ?? true {
                set(address, .created, columns.withoutNulls(now))
                return .changed(isNew: true)
            }
        }
        let all = listed(names ?? now.names)
        set(address, .updated, Attributes(names: all, values: all.map { now[$0] ?? .null }))
        return line == nil ? .changed(isNew: false) : .noted
    }

    /// Why a set that had its unique values moved out of the way cannot be accepted: a record that it
    /// deletes was kept by a trigger, without its value. Nil where all are gone.
    package func refusalOfKept(_ plan: SetPlan, _ facts: SetFacts, _ schema: Schema) -> Refusal? {
        for delete in plan.deletes
        where self[facts.permanentAddress(of: delete.address)]?.deed != .deleted {
            let name = schema.types[delete.type].name
            return Refusal(
                .constraint, "a trigger of “\(name)” keeps a record that the set deletes")
        }
        return nil
    }
}
