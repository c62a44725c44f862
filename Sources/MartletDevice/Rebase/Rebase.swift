internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Applies remote change under the device's own unconfirmed edits, in one transaction.
///
/// It undoes own edits from their base images, applies the remote sets as the server made them, and
/// redoes the unconfirmed edits in order. A set that cannot be redone, or has become stale, is
/// parked whole. If the remote sets touch nothing that the waiting edits touch, those stay in place
/// and only the decided ones are undone.
///
/// Foreign keys are off on this connection, so that order inside a set does not matter. Redone sets
/// are checked here instead.
struct Rebase {
    let store: LocalStore
    let outbox: Outbox
    let parking: Parking
    /// Milliseconds since 1970, for receipts.
    let now: Int64
    /// Whether data that the device once had is still missing. A waiting set may need it.
    let isRefetching: Bool
    /// Whether the caller redoes more own work afterwards. If so, the effects of own accepted sets
    /// are noted even if no set waits, and withheld records are left to the caller.
    let notesOwn: Bool
    /// The parts of a snapshot that are missing afterwards; the caller stores them.
    private(set) var missing: MissingParts?
    /// See `ConfirmedSets.mostBytes`.
    private let mostKeptBytes: Int64
    var applier: RemoteApplier
    private let withheld: Withheld
    var report = RebaseReport()
    /// Whether any set waits that may have to be moved.
    private var hasWaiting = false
    /// Records that other devices' sets touched, with the newest revision that did.
    private var touchedByOthers: [RecordKey: Revision] = [:]
    /// Records that waiting sets create. Changes by other devices to earlier records under the same
    /// keys concern these sets, not the later ones.
    private var created: Set<RecordKey> = []
    /// The newest revision that own accepted sets gave each record.
    private(set) var ownRevisions: [RecordKey: Revision] = [:]
    /// The base revisions that those sets name; only while others wait.
    private(set) var ownBases: [RecordKey: Revision] = [:]
    /// Temporary ids that became permanent now.
    private(set) var assigned: [RecordKey: Int64] = [:]
    /// Records of parked sets.
    private var blocked: Set<RecordKey> = []
    /// The first waiting set that was sent, if there is one. The outcome of later sets depends on
    /// its verdict.
    private var firstSent: Int64?
    /// Records of sets that cannot be applied until sent ones have their verdicts.
    private var undecided: Set<RecordKey> = []
    /// Records of redone sets that were sent and have no verdict yet.
    private var awaited: Set<RecordKey> = []
    /// The number of sets that could not be redone.
    private var failures = 0
    /// Whether the tables were emptied for a snapshot, which undoes all waiting sets.
    private var isEmptied = false
    /// Records whose confirmed images the tables refused.
    var refusedImages: [RecordKey] = []
    /// Whether all rows that the user may see are here afterwards. What is not then may be hidden.
    var isForView = false
    /// Whether the user sees a part of the records, so that one which is not here may exist.
    var seesPart = false
    /// Records that are known not to exist: deleted ones, and new ones of sets that are not applied.
    private(set) var absent: Set<RecordKey> = []
    /// Records that left the user's view, without those that he deleted. Some may be in it again.
    private(set) var hidden: Set<RecordKey> = []
    /// The revision that the tables have: first the device's, then that of the differences applied.
    private var covered: Revision = 0

    init(
        store: LocalStore, registry: ModelRegistry = ModelRegistry(), now: Int64,
        isRefetching: Bool = false, notesOwn: Bool = false, missing: MissingParts?,
        mostKeptBytes: Int64
    ) {
        self.mostKeptBytes = mostKeptBytes
        self.notesOwn = notesOwn
        self.store = store
        self.now = now
        self.isRefetching = isRefetching
        outbox = Outbox(store: store)
        parking = Parking(store: store)
        self.missing = missing
        withheld = Withheld(store: store, now: now)
        applier = RemoteApplier(store: store, registry: registry, now: now)
    }

    /// Applies a run of an answer's sets. The caller has opened the transaction, turned external
    /// writes into sets and turned capture off.
    /// - Parameter sources: The data to put in place before them.
    /// - Throws: `StoreError` `.inconsistent` if a set cannot be applied to what is stored, naming
    ///   the record; `SQLiteError` if the file fails. The caller rolls back.
    mutating func apply(
        _ sets: ArraySlice<ChangeSet>, after current: Revision,
        on sources: DataSources = DataSources()
    ) throws {
        // Each is looked up, because the queue may have thousands, and an answer is applied in many
        // runs.
        var own: [String: QueuedSet] = [:]
        for identifier in sources.identifiers + sets.compactMap(\.identifier) {
            own[identifier] = try outbox.queued(identifier)
        }
        var decided = Set(sources.identifiers.compactMap { own[$0]?.sequence })
        for set in sets where set.retryAfter == nil {
            if let own = set.identifier.flatMap({ own[$0] }) { decided.insert(own.sequence) }
        }
        try mark(decided, as: 1)
        let plan = Plan(
            sources: sources, sets: sets, own: own, decided: decided, current: current,
            hasWaiting: try outbox.hasQueued(where: Outbox.isWaiting))
        hasWaiting = try plan.hasWaiting || !withheld.isEmpty
        covered = current
        let fresh = self
        var effort = Effort(
            moving: sources.isEmpty && plan.hasWaiting
                ? try AffectedSets(store: store, plan: plan).sequences() : nil)
        effort.isPart = sources.part != nil
        effort.manner.isLenient = sources.isLenient
        try store.connection.run("SAVEPOINT martlet_rebase")
        while true {
            do {
                applier.manner = effort.manner
                try run(plan, moving: effort.moving)
                break
            } catch {
                guard store.connection.isInTransaction,
                    let next = effort.next(after: error, hasDifference: plan.hasDifference)
                else { throw applier.location.named((error as? RefusedImage)?.cause ?? error) }
                try store.connection.run("ROLLBACK TO martlet_rebase")
                self = fresh
                effort = next
            }
        }
        try store.connection.run("RELEASE martlet_rebase")
        report.quarantined = try applier.quarantine.added()
        report.keptAside = applier.keptAside.added.list
    }

    /// Applies the staged parts, then the answer's sets.
    private mutating func takeIn(_ plan: Plan) throws {
        let inbox = Inbox(store: store)
        let parts = plan.sources.hasStaged ? try inbox.parts() : []
        let isDifference = parts.map(\.isDifference) + plan.sets.map(\.isDifference)
        func content(_ index: Int) throws -> ChangeSet {
            index < parts.count
                ? try inbox.content(of: parts[index])
                : plan.sets[plan.sets.startIndex + index - parts.count]
        }
        var index = 0
        while index < isDifference.count {
            let end = isDifference[index...].firstIndex(of: false) ?? isDifference.count
            if end > index + 1 {
                try merge(index..<end, after: plan.current, content)
                index = end
            } else {
                try judge(content(index), plan)
                index += 1
            }
        }
    }

    /// Applies the parts of one difference. A row may occur in several parts, and rows of an
    /// earlier and a later part may never have existed together. Therefore all rows are removed
    /// first, and then inserted from the last part to the first, each in its newest form.
    private mutating func merge(
        _ parts: Range<Int>, after current: Revision, _ content: (Int) throws -> ChangeSet
    ) throws {
        for part in parts { try applier.takeOut(content(part)) }
        var filled = RemoteApplier.Filled()
        for part in parts.reversed() {
            let set = try content(part)
            guard let revision = set.revision else {
                throw StoreError(.inconsistent, "The server sent a part without its revision.")
            }
            try applier.fill(set, revision: revision, beside: &filled)
            report.remoteRecords += set.recordCount
            try hidden.formUnion(set.hidden(in: store))
            covered = max(covered, revision)
            // A part that ends between two rows of a revision names the one before. The last part,
            // which is met first, names the revision that all parts lead to.
            let newest = min(revision + 1, covered)
            if newest > current { try note(set, isOwn: false, revision: newest) }
        }
    }

    private mutating func judge(_ set: ChangeSet, _ plan: Plan) throws {
        let own = set.identifier.flatMap { plan.own[$0] }
        if set.conflict == true {
            if let own { try refuse(set, own: own) }
        } else {
            try accept(set, own: own, current: plan.current)
        }
    }

    /// Adds the missing rows of a slice of a part.
    /// - Parameter isBesideOwn: See `RowCopy.run`.
    private mutating func add(
        _ slice: SnapshotSlice, of rows: SnapshotRows, isBesideOwn: Bool
    ) throws {
        try rows.add(slice, .missing, by: &applier, isBesideOwn: isBesideOwn)
        report.remoteRecords += slice.recordCount
        for run in slice.runs {
            let name = rows.reader.schema.types[run.type].name
            if store.schema[name] != nil { report.changedTypes.insert(name) }
        }
        if slice.next == nil { missing = missing?.without(rows.description.part) }
    }

    /// Undoes own sets, applies the answer, and redoes those that still wait.
    /// - Parameter moving: The waiting sets to undo and redo; nil for all.
    private mutating func run(_ plan: Plan, moving: Set<Int64>?) throws {
        if let moving { try mark(moving, as: 2) }
        let waiting =
            plan.hasWaiting
            ? try outbox.queued(where: moving == nil ? Outbox.isWaiting : Outbox.isMoving) : []
        if let manifest = plan.sources.manifest {
            try SnapshotRows.makeRoom(in: store)
            isEmptied = true
            missing = MissingParts(manifest.parts, of: manifest)
            report.changedTypes.formUnion(store.schema.types.map(\.name))
            covered = manifest.revision
        } else {
            try undo(isWhole: moving == nil)
            if let (rows, slice) = plan.sources.part {
                try add(slice, of: rows, isBesideOwn: moving != nil)
            }
        }
        try takeIn(plan)
        try releaseImages()
        firstSent = waiting.first(where: \.isSent)?.sequence
        for set in waiting {
            let before = failures
            report.movedSets += 1
            try redo(set)
            if moving != nil, failures > before { throw NeedsAll() }
        }
        if !notesOwn {
            try withheld.putBack(assigned: assigned, own: ownRevisions, madeOn: ownBases)
        }
        if moving != nil {
            try store.connection.run(
                "UPDATE martlet_outbox SET settling = 0 WHERE \(Outbox.isMoving)")
        }
    }
}

// MARK: - The server's verdicts

extension Rebase {
    private mutating func accept(
        _ set: ChangeSet, own: QueuedSet?, current: Revision
    ) throws {
        guard let revision = set.revision else {
            throw StoreError(.inconsistent, "The server sent an entry without its revision.")
        }
        if revision > covered {
            report.remoteRecords += own == nil ? set.recordCount : 0
            try applier.apply(set, revision: revision)
            if set.isDifference { covered = revision }
            try hidden.formUnion(set.hidden(in: store))
        } else if own == nil, revision <= current {
            report.passedOver += 1
        }
        if revision > current { try note(set, isOwn: own != nil, revision: revision) }
        if let own {
            for change in hasWaiting ? try outbox.changes(of: own.sequence) : [] {
                ownBases[change.key] = max(ownBases[change.key] ?? 0, change.baseRevision)
            }
            if set.types.isEmpty, hasWaiting || notesOwn {
                try noteCompacted(own, revision: revision)
            }
            try keepAssignedIDs(set)
            try leaveDeleted(by: own)
            try ConfirmedSets(store: store, mostBytes: mostKeptBytes)
                .keep(own, revision: revision, now: now)
            try outbox.remove(own.sequence)
            let receipt = Receipt(
                identifier: own.identifier, outcome: .accepted, revision: revision)
            try parking.keep(receipt, sequence: own.sequence, now: now)
            report.receipts.append(receipt)
        }
    }

    /// Notes the records that an entry touched, for the edits that wait.
    private mutating func note(_ set: ChangeSet, isOwn: Bool, revision: Revision) throws {
        try pass(set, revision: revision)
        for changes in set.types {
            if store.schema.index(of: changes.name) != nil {
                report.changedTypes.insert(changes.name)
                if !changes.delete.isEmpty {
                    report.removed[changes.name, default: []].formUnion(changes.delete)
                }
            }
            guard hasWaiting || notesOwn, let number = try store.number(ofType: changes.name) else {
                continue
            }
            let deleted = Set(changes.delete).subtracting(changes.hidden)
            absent.formUnion(deleted.map { RecordKey(type: number, id: $0) })
            // A record's revision may be older than its set's, because an attribute that a
            // migration of the server added overrides no edit.
            var own: [RecordID: Revision] = [:]
            if !isOwn {
                for entry in changes.entries { own[entry.id] = entry.revision }
                // Another part of a difference may have a later record with the key of a deleted one.
                for id in set.isDifference ? changes.delete : [] {
                    own[id] = try outbox.confirmedRevision(number, id)
                }
            }
            for id in changes.create + changes.update + changes.delete {
                let key = RecordKey(type: number, id: id)
                if isOwn {
                    // Of two own sets, the verdict on the later one may arrive first.
                    ownRevisions[key] = max(ownRevisions[key] ?? 0, revision)
                } else {
                    touchedByOthers[key] = max(touchedByOthers[key] ?? 0, own[id] ?? revision)
                }
            }
        }
    }

    /// Notes the records of an own set that the server has without its content, because it has compacted
    /// the set.
    private mutating func noteCompacted(_ own: QueuedSet, revision: Revision) throws {
        for change in try outbox.changes(of: own.sequence) {
            let id = try store.permanentID(of: change.key).map(RecordID.integer) ?? change.id
            let key = RecordKey(type: change.number, id: id)
            ownRevisions[key] = max(ownRevisions[key] ?? 0, revision)
        }
    }

    /// Leaves what is kept of records that the user deleted himself: nobody hid them from him.
    private mutating func leaveDeleted(by own: QueuedSet) throws {
        guard !hidden.isEmpty else { return }
        for change in try outbox.changes(of: own.sequence) where change.operation == .delete {
            let id = try store.permanentID(of: change.key).map(RecordID.integer) ?? change.id
            hidden.remove(RecordKey(type: change.number, id: id))
        }
    }

    /// Stores for ever which permanent id a temporary one became.
    private mutating func keepAssignedIDs(_ set: ChangeSet) throws {
        for changes in set.types {
            guard let number = try store.number(ofType: changes.name) else { continue }
            for entry in changes.entries {
                guard case .integer(let old)? = entry.oldID, case .integer(let id) = entry.id
                else { continue }
                assigned[RecordKey(type: number, id: .integer(old))] = id
                let row = try store.connection.statement(
                    "INSERT OR REPLACE INTO martlet_ids(type, temporary, id) VALUES (?, ?, ?)")
                row.bind(1, integer: number)
                row.bind(2, integer: old)
                row.bind(3, integer: id)
                try row.run()
                report.assignedIDs += 1
            }
        }
    }

    private mutating func refuse(_ set: ChangeSet, own: QueuedSet) throws {
        if let wait = set.retryAfter {
            report.retryAfter = max(report.retryAfter ?? 0, wait)
            return
        }
        // To the server, a record that its user may not see does not exist. The device knows better.
        if set.reason == .stale,
            let refusal = try outbox.changes(of: own.sequence).compactMap(hiding).first
        {
            return try park(own, reason: refusal.reason, message: refusal.message)
        }
        try park(
            own, reason: set.reason ?? .invalid,
            message: set.message ?? "The server refused the change without a sentence.",
            isTruthCut: set.isTruthCut)
    }

    /// Parks a set with its images, and blocks the sets made on top of it.
    private mutating func park(
        _ own: QueuedSet, reason: RefusalReason, message: String, isTruthCut: Bool = false
    ) throws {
        let changes = try outbox.changes(of: own.sequence)
        blocked.formUnion(changes.lazy.map(\.key))
        noteAway(changes)
        try parking.park(
            own, reason: reason, message: message, isTruthCut: isTruthCut, now: now)
        report.receipts.append(
            Receipt(
                identifier: own.identifier, outcome: .refused, reason: reason, message: message))
    }
}

// MARK: - Redoing

extension Rebase {
    private mutating func redo(_ own: QueuedSet) throws {
        let changes = try rewritten(own)
        let refusal = try refusal(of: changes, isSent: own.isSent)
        if own.isSent { awaited.formUnion(changes.lazy.map(\.key)) }
        if let refusal {
            return try own.isSent ? wait(own, changes) : refuse(own, refusal)
        }
        if changes.contains(where: { undecided.contains($0.key) }) { return try wait(own, changes) }
        created.formUnion(changes.lazy.filter { $0.operation == .create }.map(\.key))
        do {
            let mayLack = seesPart && !isRefetching && missing == nil
            try SetReplay(store: store, outbox: outbox, absent: mayLack ? absent : nil)
                .apply(changes)
            absent.formUnion(changes.lazy.filter { $0.operation == .delete }.map(\.key))
            if !own.isApplied || isEmptied { try mark(own, isApplied: true) }
        } catch let refusal as ReplayRefusal {
            if isRefetching || missing != nil {
                failures += 1
                try mark(own, isApplied: false)
            } else {
                // A verdict may bring a record that it lacks, or remove one that blocks it.
                let mayFit = firstSent.map { $0 <= own.sequence } ?? false
                try mayFit ? wait(own, changes) : refuse(own, refusal)
            }
        }
    }

    /// Returns a refusal that is known in advance: an edit that was never sent has become stale, or
    /// it was made on top of a parked set.
    private func refusal(of changes: [StoredChange], isSent: Bool) throws -> ReplayRefusal? {
        for change in changes {
            if !isSent, let refusal = try hiding(change) { return refusal }
            if blocked.contains(change.key) {
                let name = try store.typeName(ofNumber: change.number)
                return ReplayRefusal(
                    .dependency,
                    "It was made on top of a change to the same record of \(name) that"
                        + " was refused.")
            }
            // A change that is not newer than the edit's base was seen by its author, and arrived
            // again. The effects of a sent set without a verdict may look like another device's
            // change.
            if !isSent, !awaited.contains(change.key), change.operation != .create,
                !created.contains(change.key),
                let newest = touchedByOthers[change.key], newest > change.baseRevision
            {
                let name = try store.typeName(ofNumber: change.number)
                return .overtaken(name)
            }
        }
        return nil
    }

    /// Returns a refusal if a change is to a record that the user may not see any more.
    private func hiding(_ change: StoredChange) throws -> ReplayRefusal? {
        guard isForView || hidden.contains(change.key), change.operation != .create,
            !created.contains(change.key)
        else { return nil }
        if case .integer(let id) = change.id, id < 0 { return nil }
        guard try Purge(store: store).isAway(change.key) else { return nil }
        return .hidden(try store.typeName(ofNumber: change.number))
    }

    /// Leaves a set unapplied. One that was sent may have been accepted, so it waits for its
    /// verdict, and later sets wait with it.
    private mutating func wait(_ own: QueuedSet, _ changes: [StoredChange]) throws {
        failures += 1
        undecided.formUnion(changes.lazy.map(\.key))
        created.formUnion(changes.lazy.filter { $0.operation == .create }.map(\.key))
        noteAway(changes)
        try mark(own, isApplied: false)
    }

    private mutating func refuse(_ own: QueuedSet, _ refusal: ReplayRefusal) throws {
        failures += 1
        try park(own, reason: refusal.reason, message: refusal.message)
    }

    /// Adds the records of a set that is not applied now to the report.
    private mutating func noteAway(_ changes: [StoredChange]) {
        for change in changes {
            guard let type = change.type else { continue }
            let name = store.schema.types[type].name
            report.changedTypes.insert(name)
            if change.operation == .create {
                absent.insert(change.key)
                report.removed[name, default: []].insert(change.id)
            }
        }
    }

    private func mark(_ own: QueuedSet, isApplied: Bool) throws {
        let update = try store.connection.statement(
            "UPDATE martlet_outbox SET applied = ? WHERE sequence = ?")
        update.bind(1, integer: isApplied ? 1 : 0)
        update.bind(2, integer: own.sequence)
        try update.run()
    }
}
