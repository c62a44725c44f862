internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

extension DeviceStore {
    /// Restores records to the server's state, or makes change sets of uncaptured edits, in one
    /// transaction.
    /// - Parameters:
    ///   - records: The records that were hashed.
    ///   - revisions: The revisions at which the differences are true.
    /// - Returns: The findings; nil if the device has another revision by now, or its file was
    ///   emptied to be fetched again. Nothing was done then.
    func repair(
        _ differences: [SelfCheck.Difference], of records: [HashedRecords],
        at revisions: ClosedRange<Revision>, by manner: CheckRepair, now: Int64
    ) throws -> [CheckReport.Finding]? {
        try inMendingTransaction {
            let standing = try standing
            let current = standing.revision
            guard revisions.contains(current), standing.isAtOneRevision else { return nil }
            try closeExternalCapture(applying, now: now)
            try applying.setCapture(false)
            try applying.passKeys()
            var repair = try Repair(store: applying, manner: manner)
            for difference in differences {
                try repair.judge(difference, of: records[difference.typeIndex])
            }
            var rebase = Rebase(
                store: applying, registry: registry, now: now, missing: nil,
                mostKeptBytes: mostKeptBytes)
            if let set = repair.truths(after: current) {
                try rebase.apply([set][...], after: current)
            }
            try enqueue(try repair.captured(now: now), now: now)
            try applying.setState("nextTemporaryID", .integer(repair.nextTemporaryID))
            try applying.setCapture(true)
            observer?.applyingWillCommit(rebase.report)
            return repair.findings
        }
    }

    private func enqueue(_ captured: Repair.Captured, now: Int64) throws {
        let outbox = Outbox(store: applying)
        if let (changes, sequence) = captured.ahead {
            let newest = try applying.counter("nextSequence")
            try outbox.enqueue(changes, identifier: newIdentity(), now: now)
            try outbox.prependIfItFits(newest, to: sequence)
        }
        guard !captured.rest.isEmpty else { return }
        try outbox.enqueue(captured.rest, identifier: newIdentity(), now: now)
    }
}

/// Sorts differences by their causes, and collects the repairs.
private struct Repair {
    let store: LocalStore
    let manner: CheckRepair
    private(set) var findings: [CheckReport.Finding] = []
    private(set) var nextTemporaryID: Int64
    /// The rows to write and the records to delete, by type.
    private var updates: [Int: [RecordEntry]] = [:]
    private var deletes: [Int: [RecordID]] = [:]
    /// Uncaptured edits that become change sets.
    private var edits: [Edit] = []

    private struct Edit {
        let type: Int
        var id: RecordID
        let truth: Attributes?
        /// The values to write on top of a record's queued edits.
        var onTop: Attributes?
        /// The image before the queued edits, for a new record.
        var image: Attributes?
        /// The reason why the record cannot be sent, if it holds a value that no set can carry.
        var refusal: String?
        /// The position of the edit's finding in the report.
        var finding = 0
    }

    /// The uncaptured edits, as changes for the outbox.
    struct Captured {
        /// New records that a queued set needs, to be sent with it.
        var ahead: (changes: [RecordChange], sequence: Int64)?
        var rest: [RecordChange] = []
    }

    /// A record's confirmed state on the device.
    private struct Confirmed {
        /// The row's values; nil if there is no row, or it cannot be read.
        var row: Attributes?
        /// The reason why the row cannot be read.
        var refusal: String?
        var hasRow = false
        var mark: Revision?
        var hasQueuedEdits = false
        /// Whether no revision was known when the first of these edits was made.
        var isNewUnderEdits = false
    }

    init(store: LocalStore, manner: CheckRepair) throws {
        self.store = store
        self.manner = manner
        nextTemporaryID = try store.counter("nextTemporaryID")
    }

    mutating func judge(_ difference: SelfCheck.Difference, of records: HashedRecords) throws {
        guard let type = store.schema.index(of: records.type.name) else { return }
        let confirmed = try confirmed(type, difference.id)
        let truth = difference.truth
        guard let reason = reason(confirmed, truth, records) else { return }
        var edit =
            try manner == .capture && reason == .uncaptured
            ? edit(type, difference.id, confirmed, truth) : nil
        edit?.finding = findings.count
        if let edit { edits.append(edit) }
        // An edit on top of queued ones is made once these are based on the server's row.
        if edit == nil || edit?.onTop != nil {
            if let truth {
                updates[type, default: []].append(truth)
            } else {
                deletes[type, default: []].append(difference.id)
            }
        }
        findings.append(
            CheckReport.Finding(
                type: records.type.name, id: difference.id, reason: reason,
                outcome: edit.map { $0.refusal == nil ? .captured : .withheld } ?? .repaired))
    }

    private func confirmed(_ type: Int, _ id: RecordID) throws -> Confirmed {
        let outbox = Outbox(store: store)
        let number = store.numbers[type]
        var confirmed = Confirmed(mark: try outbox.confirmedRevision(number, id))
        if let base = try outbox.base(number, id) {
            confirmed.hasQueuedEdits = true
            confirmed.isNewUnderEdits = base.revision == 0
            confirmed.row = try base.image.map { try SyncCoder.decodeAttributes($0) }
            confirmed.hasRow = confirmed.row != nil
            return confirmed
        }
        confirmed.hasRow = try store.tables[type].exists(id)
        do {
            confirmed.row = try store.tables[type].read(id).map { store.stored($0, type: type) }
        } catch {
            guard error.isMismatch else { throw error }
            confirmed.refusal = error.message + "."
        }
        return confirmed
    }

    /// Returns the kind of a difference; nil if there is none any more.
    private func reason(
        _ confirmed: Confirmed, _ truth: RecordEntry?, _ records: HashedRecords
    ) -> CheckReport.Reason? {
        guard let truth else {
            guard confirmed.hasRow || confirmed.mark != nil else { return nil }
            let isNew = !confirmed.hasQueuedEdits || confirmed.isNewUnderEdits
            return confirmed.mark == nil && isNew ? .uncaptured : .extra
        }
        guard confirmed.hasRow else {
            return confirmed.mark == truth.revision ? .uncaptured : .missing
        }
        var hasher = RowHasher(type: records.type, attributes: records.attributes)
        let isSame =
            confirmed.row.map {
                hasher.hash(truth.id, $0) == hasher.hash(truth.id, truth.attributes)
            } ?? false
        if isSame { return confirmed.mark == truth.revision ? nil : .revision }
        return confirmed.mark == truth.revision ? .uncaptured : .different
    }

    // MARK: - The repairs

    /// Returns the server's rows as a difference; nil if there are none to write.
    func truths(after current: Revision) -> ChangeSet? {
        let types = Set(updates.keys).union(deletes.keys).sorted()
        guard !types.isEmpty else { return nil }
        var set = ChangeSet(
            types: types.map { type in
                let entries = updates[type] ?? []
                return TypeChanges(
                    name: store.schema.types[type].name, update: entries.map(\.id),
                    delete: deletes[type] ?? [], entries: entries)
            })
        set.isDifference = true
        // The set's revision is after the device's own, so that it is applied. The device's
        // revision stays.
        set.revision = current + 1
        return set
    }

    /// Returns the uncaptured edit of a record; nil if no edit can be made of it.
    private func edit(
        _ type: Int, _ id: RecordID, _ confirmed: Confirmed, _ truth: RecordEntry?
    ) throws -> Edit? {
        let known = truth.map { stored($0.attributes, type: type) }
        guard confirmed.hasQueuedEdits else {
            return Edit(type: type, id: id, truth: known, refusal: confirmed.refusal)
        }
        guard let row = confirmed.row, try store.tables[type].exists(id) else { return nil }
        guard let known else {
            // Once edits were sent, the record that they need can no longer be sent before them.
            guard try !hasSentEdits(type, id) else { return nil }
            return Edit(type: type, id: id, truth: nil, onTop: nil, image: row)
        }
        let queued = try queuedNames(type, id)
        let changed = changes(from: known, to: row, type: type)
        var onTop = Attributes()
        for (name, value) in zip(changed.names, changed.values) where !queued.contains(name) {
            onTop[name] = value
        }
        return onTop.isEmpty ? nil : Edit(type: type, id: id, truth: known, onTop: onTop)
    }

    private func hasSentEdits(_ type: Int, _ id: RecordID) throws -> Bool {
        let find = try store.connection.statement(
            """
            SELECT 1 FROM martlet_changes AS change JOIN martlet_outbox AS queued
            ON queued.sequence = change.sequence
            WHERE change.type = ?1 AND change.id = ?2 AND (queued.sent OR NOT queued.applied)
            """)
        defer { find.reset() }
        find.bind(1, integer: store.numbers[type])
        find.bind(2, id)
        return try find.step()
    }

    /// Returns the attributes that queued edits of a record set.
    private func queuedNames(_ type: Int, _ id: RecordID) throws -> Set<String> {
        let rows = try store.connection.statement(
            "SELECT after FROM martlet_changes WHERE type = ?1 AND id = ?2 AND after IS NOT NULL")
        defer { rows.reset() }
        rows.bind(1, integer: store.numbers[type])
        rows.bind(2, id)
        var names: Set<String> = []
        while try rows.step() {
            names.formUnion(try SyncCoder.decodeAttributes(rows.blob(0)).names)
        }
        return names
    }

    /// Returns the changes of the uncaptured edits, for the outbox. The tables show them already,
    /// except for new records with integer keys, which get temporary ones.
    mutating func captured(now: Int64) throws -> Captured {
        var records = UncapturedRecords(store: store)
        for index in edits.indices where edits[index].truth == nil {
            let isSent = edits[index].refusal == nil
            guard case .integer = edits[index].id else {
                if isSent { records.add(edits[index].type, edits[index].id) }
                continue
            }
            try records.add(
                edits[index].type, edits[index].id, as: nextTemporaryID, isSent: isSent)
            edits[index].id = .integer(nextTemporaryID)
            nextTemporaryID -= 1
        }
        try records.rewriteSets()
        for index in edits.indices {
            let edit = edits[index]
            edits[index].onTop = edit.onTop.map { records.followed($0, type: edit.type) }
            guard let image = edit.image else { continue }
            edits[index].image = records.followed(image, type: edit.type)
            try records.becomeNew(edit.type, edit.id)
        }
        var captured = Captured(rest: try withholding(now: now))
        guard let needed = try records.needed() else { return captured }
        let isAhead: (RecordChange) -> Bool = { [numbers = store.numbers] change in
            change.operation == .create
                && needed.keys.contains(RecordKey(type: numbers[change.type], id: change.id))
        }
        captured.ahead = (captured.rest.filter(isAhead), needed.sequence)
        captured.rest.removeAll(where: isAhead)
        return captured
    }

    /// Returns the changes that can be sent, and withholds the others, which stay in the tables.
    private mutating func withholding(now: Int64) throws -> [RecordChange] {
        var withheld = Withheld(store: store, now: now)
        let outbox = Outbox(store: store)
        var changes: [RecordChange] = []
        var positions: [RecordKey: Int] = [:]
        for edit in edits {
            positions[RecordKey(type: store.numbers[edit.type], id: edit.id)] = edit.finding
            if let refusal = edit.refusal {
                let note = NotedRecord(
                    type: edit.type, id: edit.id, image: edit.truth?.withoutNulls(),
                    schema: store.schema)
                try withheld.put(note, reason: refusal)
            } else if let change = try change(edit) {
                changes.append(change)
            }
        }
        let sizes = try changes.map { try outbox.bytes(of: $0) }
        let (kept, _) = try withheld.leaveOut(changes, sizes)
        let sent = Set(kept.map { RecordKey(type: store.numbers[$0.type], id: $0.id) })
        for change in changes {
            let key = RecordKey(type: store.numbers[change.type], id: change.id)
            guard !sent.contains(key), let position = positions[key] else { continue }
            findings[position].outcome = .withheld
        }
        return kept
    }

    private func change(_ edit: Edit) throws -> RecordChange? {
        let table = store.tables[edit.type]
        if let onTop = edit.onTop {
            // Queued edits that had become stale took the record with them.
            guard try table.update(edit.id, onTop) else { return nil }
            return RecordChange(
                type: edit.type, id: edit.id, operation: .update, before: edit.truth, after: onTop)
        }
        let row = try edit.image ?? table.read(edit.id).map { store.stored($0, type: edit.type) }
        guard let truth = edit.truth else {
            return row.map {
                RecordChange(
                    type: edit.type, id: edit.id, operation: .create, before: nil,
                    after: created($0, type: edit.type))
            }
        }
        guard let row else {
            return RecordChange(
                type: edit.type, id: edit.id, operation: .delete, before: truth,
                after: Attributes())
        }
        let changed = changes(from: truth, to: row, type: edit.type)
        guard !changed.isEmpty else { return nil }
        return RecordChange(
            type: edit.type, id: edit.id, operation: .update, before: truth, after: changed)
    }

    // MARK: Attributes

    /// Returns those of the attributes that the type's table holds.
    private func stored(_ attributes: Attributes, type: Int) -> Attributes {
        store.stored(store.known(attributes, type: type), type: type)
    }

    /// Returns the attributes of a new record, with a null only if the server would put a default
    /// in its place.
    private func created(_ row: Attributes, type: Int) -> Attributes {
        var created = Attributes()
        for (name, value) in zip(row.names, row.values) {
            let hasDefault = store.schema.types[type][attribute: name]?.hasDefault ?? false
            if value != .null || hasDefault { created[name] = value }
        }
        return created
    }

    /// Returns the attributes whose values differ, with the values of `row`.
    private func changes(from truth: Attributes, to row: Attributes, type: Int) -> Attributes {
        var changed = Attributes()
        for attribute in store.schema.types[type].attributes where !attribute.isGenerated {
            // An attribute that the server does not have is no edit.
            guard let before = truth[attribute.name] else { continue }
            let now = row[attribute.name] ?? .null
            if before != now { changed[attribute.name] = now }
        }
        return changed
    }
}
