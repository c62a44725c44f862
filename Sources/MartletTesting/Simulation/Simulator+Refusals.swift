internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Judges whether a refusal was needed: a save that no other person's change touches is never refused.
extension Simulator {
    /// - Throws: `SimulationFailure` if no change by another device or program explains the refusal
    ///   of a save.
    func checkNeed(of receipt: Receipt, on device: DeviceMachine) throws {
        guard let store = device.node?.store else { return }
        func touched(_ set: ParkedSet) -> [Ledger.Record] {
            set.changes.map { Ledger.Record(type: $0.type, id: $0.id) }
        }
        let parked = try store.parked()
        let index = parked.firstIndex { $0.identifier == receipt.identifier }
        let set = index.map { parked[$0] }
        let records = set.map(touched) ?? []
        // The server also refuses a save that was made on top of a refused one. Some of these were
        // not reported, because the machine crashed.
        let earlier = parked[..<(index ?? 0)].flatMap(touched)
        let refused = (ledger.refused[device.number] ?? []).union(earlier)
        ledger.refuse(records, on: device.number)
        // A set that is made later of external writes is no save.
        guard let save = ledger.saves[receipt.identifier] else { return }
        let sentence =
            "device \(device.number): a save was refused although nobody else touched it:"
            + " \(receipt.reason?.rawValue ?? "-"), \(receipt.message ?? "")"
        guard let set else {
            guard mix.people == .together else { throw failure(sentence) }
            return
        }
        let named = missed(set, receipt)
        if !named.isEmpty {
            // A person who does not see an own save may refer to records that the save deletes.
            if save.isBesideUnapplied, try hasDeleted(named, by: device) { return }
            // A reference to a record that is only hidden is left to the server.
            if rights != nil, named.allSatisfy({ model.records[$0.type]?[$0.id] != nil }) {
                throw failure(sentence)
            }
        }
        if isExcused(receipt, records, save) { return }
        if isBroken(set, beside: parked) { return }
        if receipt.reason == .constraint, try changesCase(set) || meetsUnseen(set, receipt) {
            return
        }
        // A person who does not see an own save may change records that the save had deleted.
        if receipt.reason == .stale, save.isBesideUnapplied, try hasDeleted(records, by: device) {
            return
        }
        // The save was made on top of one that was refused for such a reason.
        if receipt.reason == .dependency, records.contains(where: refused.contains) { return }
        guard mix.people == .together else {
            // It may also refer to a record of the refused save, delete what that one untied, or
            // need a unique value that it gave up.
            let types = Set(records.map(\.type))
            if refused.contains(where: { types.contains($0.type) }) { return }
            throw failure(sentence)
        }
        if records.contains(where: refused.contains) || save.isBesideUnapplied { return }
        let others = (Int(save.seenAll)..<logged.count).lazy
            .filter { save.isOnPast || self.owners[$0] != device.number }.map { self.logged[$0] }
        let isExplained =
            receipt.reason == .stale && !set.changes.contains { $0.operation == .delete }
            ? others.contains { touches($0, set) }
            : others.contains { isNear($0, set) } || !refused.isEmpty
        guard isExplained else { throw failure(sentence) }
    }

    /// Returns the records to which the reference leads that a device's refusal of a set names; empty
    /// if it names none.
    private func missed(_ set: ParkedSet, _ receipt: Receipt) -> [Ledger.Record] {
        guard receipt.reason == .dependency, let message = receipt.message else { return [] }
        return set.changes.flatMap { change -> [Ledger.Record] in
            let type = server.types.first { $0.name == change.type }
            return (type?.references ?? []).compactMap { reference in
                guard message.hasPrefix("\(change.type).\(reference.attribute) names"),
                    let id = (change.mine?[reference.attribute]).flatMap(RecordID.init)
                else { return nil }
                return Ledger.Record(type: reference.target, id: id)
            }
        }
    }

    /// Returns whether a device's own sets, in the log or in its queue, delete one of the records.
    private func hasDeleted(
        _ records: [Ledger.Record], by device: DeviceMachine
    ) throws -> Bool {
        let store = device.node?.store
        for identifier in try store?.queuedIdentifiers() ?? [] {
            for change in try store?.changes(of: identifier) ?? []
            where change.operation == .delete
                && records.contains(Ledger.Record(type: change.type, id: change.id))
            {
                return true
            }
        }
        return zip(owners, logged).contains { owner, entry in
            owner == device.number
                && entry.types.contains { type in
                    records.contains { $0.type == type.name && type.delete.contains($0.id) }
                }
        }
    }

    /// Returns whether a set refers to a record that its save deleted: SQLite lets REPLACE do so in a table that
    /// refers to itself (docs/interop.md). If the save also made that record, no set has it.
    private func isBroken(_ set: ParkedSet, beside parked: [ParkedSet]) -> Bool {
        set.changes.contains { change in
            let type = server.types.first { $0.name == change.type }
            return (type?.references ?? []).contains { reference in
                guard reference.target == change.type,
                    let id = (change.mine?[reference.attribute]).flatMap(RecordID.init)
                else { return false }
                func isTarget(_ other: ParkedChange) -> Bool {
                    other.type == change.type && other.id == id
                }
                if set.changes.contains(where: { isTarget($0) && $0.operation == .delete }) {
                    return true
                }
                guard app.random != nil else { return false }
                let isMade = logged.contains { entry in
                    entry.types.contains { $0.name == change.type && $0.create.contains(id) }
                }
                return !isMade && !parked.contains { $0.changes.contains(where: isTarget) }
            }
        }
    }

    /// Returns whether tables of a set hold rows that no device sees, which may have the set's unique values:
    /// another program gave them keys that no record can have.
    private func meetsUnseen(_ set: ParkedSet, _ receipt: Receipt) throws -> Bool {
        guard app.random != nil else { return false }
        // A server that is off cannot be read. The refusal then says whether it was about a unique
        // value.
        guard let reader = server.reader else {
            return receipt.message?.contains("UNIQUE constraint failed") ?? false
        }
        let types = Set(set.changes.map(\.type))
        return try server.types.contains { type in
            guard types.contains(type.name) else { return false }
            let key = SQLName.quoted(type.key)
            return try reader.integer(
                """
                SELECT 1 FROM \(SQLName.quoted(type.name))
                WHERE typeof(\(key)) NOT IN ('integer', 'text') OR \(key) = ''
                    OR typeof(\(key)) = 'integer' AND \(key) NOT BETWEEN 1 AND \(Limits.greatestKey) LIMIT 1
                """) != nil
        }
    }

    /// Returns whether a set deletes a record and makes one whose key differs in case only, which a server refuses if
    /// ON UPDATE SET NULL is declared for the key (docs/schema.md).
    private func changesCase(_ set: ParkedSet) -> Bool {
        guard app.random?.script.contains("ON UPDATE SET NULL") ?? false else { return false }
        func keys(_ operation: ParkedChange.Operation) -> Set<String> {
            Set(
                set.changes.filter { $0.operation == operation }.compactMap { change in
                    guard case .text(let key) = change.id else { return nil }
                    return "\(change.type) \(key.lowercased())"
                })
        }
        return !keys(.create).isDisjoint(with: keys(.delete))
    }

    /// Returns whether an entry changes one of a set's records.
    private func touches(_ entry: ChangeSet, _ set: ParkedSet) -> Bool {
        set.changes.contains { change in
            // Only the server knows its permanent id.
            if change.id.isTemporary { return true }
            return entry.types.contains { type in
                type.name == change.type
                    && (type.create.contains(change.id) || type.update.contains(change.id)
                        || type.delete.contains(change.id))
            }
        }
    }

    /// Returns whether an entry changes records of a set's types, or of types that refer to these or
    /// to which these refer.
    private func isNear(_ entry: ChangeSet, _ set: ParkedSet) -> Bool {
        let near = nearTypes(Set(set.changes.map(\.type)))
        return entry.types.contains { near.contains($0.name) }
    }

    /// Returns types, and those that refer to them or to which they refer.
    func nearTypes(_ own: Set<String>) -> Set<String> {
        var near = own
        for type in server.types {
            for reference in type.references {
                if own.contains(type.name) { near.insert(reference.target) }
                if own.contains(reference.target) { near.insert(type.name) }
            }
        }
        return near
    }
}
