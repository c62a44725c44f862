internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Holds own sets of a history that the server does not share, from before the server's state is
/// taken over until after. All of this happens within one transaction, with capture off.
///
/// The difficulty is the ids: the server assigns ids of the lost history again, to other records.
/// Therefore the device's own records get their temporary ids back, and the verdicts lead from
/// these to the new ids. An id of another device's record that names a different record now is
/// replaced by an id that no record will ever have.
struct LostWork {
    let store: LocalStore
    /// The newest revision that both histories share.
    let common: Revision
    /// True if the history is the device's own, and its user may see other records than the device has.
    let isForView: Bool
    /// Whether the user sees a part of the records.
    let seesPart: Bool
    /// Milliseconds since 1970.
    let now: Int64
    /// The number of sets that the server had accepted and that are sent once more.
    private(set) var sentAgain = 0
    private var held: [HeldSet] = []
    private var ids: LostIDs
    /// Records on which an own set was redone, and records whose sets were parked, by their former
    /// ids.
    private var mine: Set<RecordKey> = []
    private var blocked: Set<RecordKey> = []

    private var outbox: Outbox { Outbox(store: store) }

    /// See `ConfirmedSets.mostBytes`.
    private let mostKeptBytes: Int64

    init(
        store: LocalStore, common: Revision, isForView: Bool, seesPart: Bool, now: Int64,
        mostKeptBytes: Int64
    ) {
        self.mostKeptBytes = mostKeptBytes
        self.isForView = isForView
        self.seesPart = seesPart
        self.store = store
        self.common = common
        self.now = now
        ids = LostIDs(store: store, common: common, isForView: isForView)
    }

    /// Takes out the sets whose basis the server does not share, and notes their records.
    mutating func takeOut() throws {
        held =
            try ConfirmedSets(store: store, mostBytes: mostKeptBytes).takeOut(after: common)
            + queued()
        held.sort { $0.sequence < $1.sequence }
        for set in held { try outbox.remove(set.sequence) }
        try ids.takeBack(&held)
    }

    private func queued() throws -> [HeldSet] {
        let rows = try store.connection.statement(
            """
            SELECT sequence, identifier, timestamp, records, bytes FROM martlet_outbox
            WHERE NOT \(Outbox.isCommon(upTo: common)) ORDER BY sequence
            """)
        defer { rows.reset() }
        var sets: [HeldSet] = []
        while try rows.step() {
            sets.append(
                HeldSet(
                    sequence: rows.integer(0), identifier: rows.text(1), timestamp: rows.text(2),
                    records: rows.integer(3), bytes: rows.integer(4),
                    changes: try outbox.changes(of: rows.integer(0)), wasConfirmed: false))
        }
        return sets
    }

    /// Redoes the held sets on the present rows, as new sets, or parks them.
    mutating func putBack(on rebase: Rebase, _ report: inout RebaseReport) throws {
        try ids.noteVerdicts(report.receipts)
        try ids.giveUpStrays(&held, seesPart: seesPart)
        let parking = Parking(store: store)
        for receipt in report.receipts where receipt.outcome == .refused {
            let sequence = try parking.sequence(of: receipt.identifier)
            block(try outbox.changes(of: sequence, in: "martlet_parked_changes"))
        }
        for set in try outbox.queued() where !set.isApplied {
            block(try outbox.changes(of: set.sequence))
        }
        for set in held {
            let resolved = try set.changes.map { try ids.resolved($0) }
            try insert(set, resolved)
            if let refusal = try redo(set, resolved, rebase) {
                block(set.changes)
                let own = QueuedSet(
                    sequence: set.sequence, identifier: set.identifier, isSent: false,
                    isApplied: false)
                try parking.park(
                    own, reason: refusal.reason, message: refusal.message, now: now)
                report.receipts.append(
                    Receipt(
                        identifier: set.identifier, outcome: .refused, reason: refusal.reason,
                        message: refusal.message))
            } else {
                mine.formUnion(set.changes.map(\.key))
                if set.wasConfirmed { sentAgain += 1 }
                // The set has no verdict any more.
                try store.connection.run(
                    "DELETE FROM martlet_receipts WHERE sequence = \(set.sequence)")
            }
        }
        try putBackWithheld(rebase)
    }

    /// Puts withheld edits on top of everything. If the server's record differs from the one under
    /// an edit, the edit is based on the common revision, so that the server refuses it once it is
    /// sent.
    private func putBackWithheld(_ rebase: Rebase) throws {
        let withheld = Withheld(store: store, now: now)
        try withheld.follow(rebase.assigned)
        for record in try withheld.all() where record.revision > common {
            guard let image = try record.image.map({ try SyncCoder.decodeAttributes($0) }) else {
                continue
            }
            var revision: Revision = 0
            if let truth = try ids.confirmed(record.key) {
                let isSeen =
                    rebase.ownRevisions[record.key] == truth.revision
                    || LostHistory.hasSeen(truth, base: image, common: common)
                revision = isSeen ? truth.revision : common
            }
            try withheld.base(record.key, on: revision)
        }
        try withheld.putBack(
            assigned: [:], own: rebase.ownRevisions, madeOn: rebase.ownBases)
    }

    private mutating func block(_ changes: [StoredChange]) {
        blocked.formUnion(changes.map(\.key))
    }

    private func insert(_ set: HeldSet, _ changes: [StoredChange]) throws {
        let row = try store.connection.statement(
            """
            INSERT INTO martlet_outbox(sequence, identifier, seen, timestamp, records, bytes)
            VALUES (?, ?, ?, ?, ?, ?)
            """)
        row.bind(1, integer: set.sequence)
        row.bind(2, text: set.identifier)
        // Beyond the records that it names, its author has seen nothing newer.
        row.bind(3, integer: common)
        row.bind(4, text: set.timestamp)
        row.bind(5, integer: set.records)
        row.bind(6, integer: set.bytes)
        try row.run()
        try outbox.noteBasis(of: set.sequence)
        for change in changes {
            try outbox.insertChange(change, sequence: set.sequence)
            try outbox.noteReferences(of: change, sequence: set.sequence)
        }
    }

    /// Redoes one set.
    /// - Returns: The reason why it cannot be redone; nil if it was.
    private func redo(
        _ set: HeldSet, _ changes: [StoredChange], _ rebase: Rebase
    ) throws -> ReplayRefusal? {
        do {
            for (old, change) in zip(set.changes, changes) { try judge(change, old.key, rebase) }
        } catch let refusal as ReplayRefusal {
            return refusal
        }
        do {
            // In the device's own history, each id names the same record as before.
            let absent = isForView ? rebase.absent : nil
            try SetReplay(store: store, outbox: outbox, absent: absent).apply(changes)
        } catch let refusal as ReplayRefusal {
            return refusal
        }
        try outbox.clear(set.sequence)
        for change in changes {
            let base = try outbox.base(change.number, change.id)
            try outbox.insertChange(
                StoredChange(
                    number: change.number, type: change.type, id: change.id,
                    operation: change.operation, baseRevision: base?.revision ?? 0,
                    base: base?.image, after: change.after), sequence: set.sequence)
            try outbox.noteReferences(of: change, sequence: set.sequence)
        }
        return nil
    }

    /// Checks that a change may be redone.
    /// - Parameter old: The record under its former id.
    /// - Throws: `ReplayRefusal` if it may not.
    private func judge(_ change: StoredChange, _ old: RecordKey, _ rebase: Rebase) throws {
        let name = try store.typeName(ofNumber: change.number)
        if blocked.contains(old) {
            throw ReplayRefusal(
                .dependency,
                "It was made on top of a change to the same record of \(name) that was refused.")
        }
        guard !mine.contains(old) else { return }
        let truth = try ids.confirmed(change.key)
        if change.operation == .create {
            guard truth == nil else {
                throw ReplayRefusal(.stale, "Someone else made the same record of \(name).")
            }
            return
        }
        // A record that the server does not have yet is own work; the replay shows whether it
        // exists.
        if case .integer(let id) = change.id, id < 0 { return }
        guard let truth else {
            if isForView { throw ReplayRefusal.hidden(name) }
            throw ReplayRefusal(
                .stale,
                "The server was restored from a backup that does not have the record of \(name).")
        }
        let base = try change.base.map { try SyncCoder.decodeAttributes($0) }
        let isOwnWork =
            rebase.ownRevisions[change.key] == truth.revision
            && (old != change.key || !rebase.isNew(change.key))
        guard isOwnWork || LostHistory.hasSeen(truth, base: base, common: common) else {
            if isForView { throw ReplayRefusal.overtaken(name) }
            throw ReplayRefusal(
                .stale,
                "The server was restored from a backup, and the record of \(name) is another one"
                    + " there than when it was edited.")
        }
    }
}

extension Rebase {
    /// Returns whether an own set that was accepted now has made a record.
    func isNew(_ key: RecordKey) -> Bool {
        guard case .integer(let id) = key.id else { return false }
        return assigned.contains { $0.key.type == key.type && $0.value == id }
    }
}
