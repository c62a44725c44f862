package import MartletModel

/// Notes rows that changed behind a set's statements: by ON DELETE actions, triggers or cascades.
extension SetEffects {
    /// The change that has to be noted in a record's facts.
    package enum Updated: Sendable {
        /// There is none, because the set's own effect covers it or nothing happened.
        case noted
        case deleted
        /// The record changed.
        ///
        /// - Parameter isNew: True if the record did not exist before.
        case changed(isNew: Bool)
    }

    /// Brings the effect on one record in line with its row.
    ///
    /// - Parameters:
    ///   - names: The attributes to list, in addition to the generated ones and those listed
    ///     already; nil lists all.
    ///   - facts: The present facts of the record.
    ///   - row: Reads the record's named attributes (nil for all); returns nil if there is no row.
    /// - Throws: The errors of `row`.
    package mutating func update<Fault: Error>(
        _ address: RecordAddress, listing names: [String]?, facts: RowFacts?,
        of columns: TypeColumns, row: (_ names: [String]?) throws(Fault) -> Attributes?
    ) throws(Fault) -> Updated {
        let line = self[address]
        if line?.deed == .deleted {
            // A trigger may have kept the row, or inserted it again.
            guard let kept = try row(nil) else { return .noted }
            set(address, .updated, kept)
            return .changed(isNew: false)
        }
        let isWhole = line?.deed == .created || line == nil && facts?.isDeleted ?? true
        // Only listed attributes are read, because an external write may have given the others
        // values that cannot be sent.
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
            // The removal did not happen, because the set moved the record or one above it.
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

    /// Returns the refusal of a set whose unique values were moved out of the way, if a trigger kept a
    /// record that the set deletes; that record lacks its value. Nil if all of them are gone.
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
