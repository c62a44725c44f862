internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The ids in own sets of a lost history, and their meaning in the server's history.
struct LostIDs {
    let store: LocalStore
    /// The newest revision that both histories share.
    let common: Revision
    /// Whether the server's history is the device's own, so that the ids of sets that the server has are
    /// right. If it has compacted such a set, its verdict names none.
    let isForView: Bool
    /// The ids that own records had in the lost history, by the identifier of the set that made
    /// them. These sets are sent once more unchanged.
    private var taken: [String: [(key: RecordKey, given: Int64)]] = [:]
    /// Records with ids that the server assigned, as the device had them.
    private var witnesses: [RecordKey: Witness] = [:]

    private struct Witness {
        var known: Revision?
        var image: Attributes?
        /// Whether sets of the lost history or refused sets edit it, and nothing else names it.
        var isOnlyEdited: Bool
    }

    private var outbox: Outbox { Outbox(store: store) }
    private static let tables = ["martlet_changes", "martlet_parked_changes"]

    init(store: LocalStore, common: Revision, isForView: Bool) {
        self.store = store
        self.common = common
        self.isForView = isForView
    }

    // MARK: - Before the server's state is taken over

    /// Gives own records that were made in the lost history their temporary ids back, in held and
    /// in stored sets. Notes the values of all other records that these sets name.
    mutating func takeBack(_ held: inout [HeldSet]) throws {
        var lost: [RecordKey: Int64] = [:]
        for set in held { _ = try forget(set.changes, &lost) }
        for set in try outbox.queued() {
            let changes = try outbox.changes(of: set.sequence)
            if set.isSent, !isForView { taken[set.identifier] = try forget(changes, &lost) }
            // These sets rest on the history that both sides share, and so do the records that they
            // name.
            for change in changes { try note(change, base: common, references: common) }
        }
        try rewrite(&held, IDRewriter(store: store, assigned: lost))
        for change in held.flatMap(\.changes) {
            // The record's revision when it was edited shows as much.
            try note(change, base: change.baseRevision > 0 ? change.baseRevision : nil)
        }
        try noteParked()
        let withheld = Withheld(store: store, now: 0)
        for record in try withheld.all() where record.image != nil {
            try note(record.key, base: record.revision > 0 ? record.revision : nil)
        }
        for key in try withheld.references() { try note(key, base: nil) }
        try noteConfirmed()
    }

    /// Notes the records of refused sets. Some may have left the user's view, or were deleted, so that
    /// only the sets say how long they have been known.
    private mutating func noteParked() throws {
        let parked = try store.connection.statement("SELECT sequence, seen FROM martlet_parked")
        for (sequence, seen) in try parked.rows({ (row) throws(SQLiteError) in
            (row.integer(0), row.integer(1))
        }) {
            let seen = seen > 0 ? seen : nil
            for change in try outbox.changes(of: sequence, in: "martlet_parked_changes") {
                try note(
                    change, base: change.baseRevision > 0 ? change.baseRevision : seen,
                    references: seen)
            }
        }
    }

    private func forget(
        _ changes: [StoredChange], _ lost: inout [RecordKey: Int64]
    ) throws -> [(key: RecordKey, given: Int64)] {
        var forgotten: [(key: RecordKey, given: Int64)] = []
        for change in changes where change.operation == .create {
            guard case .integer(let temporary) = change.id, temporary < 0,
                let given = try store.permanentID(of: change.key)
            else { continue }
            lost[RecordKey(type: change.number, id: .integer(given))] = temporary
            forgotten.append((change.key, given))
            let forget = try store.connection.statement(
                "DELETE FROM martlet_ids WHERE type = ? AND temporary = ?")
            forget.bind(1, integer: change.number)
            forget.bind(2, integer: temporary)
            try forget.run()
        }
        return forgotten
    }

    /// Notes the records of a change.
    /// - Parameters:
    ///   - base: A revision at which the changed record was known.
    ///   - seen: A revision at which the records to which the change refers were known.
    private mutating func note(
        _ change: StoredChange, base: Revision?, references seen: Revision? = nil
    ) throws {
        if change.operation != .create { try note(change.key, base: base, isEdit: true) }
        for key in try references(of: change) { try note(key, base: seen) }
    }

    /// Uses the bases of sets that the server still has: they also show how long records have been
    /// known.
    private mutating func noteConfirmed() throws {
        let find = try store.connection.statement(
            """
            SELECT min(base_revision) FROM martlet_confirmed_changes
            WHERE type = ? AND id = ? AND base_revision > 0
            """)
        defer { find.reset() }
        for (key, witness) in witnesses {
            find.rewind()
            find.bind(1, integer: key.type)
            find.bind(2, key.id)
            guard try find.step(), !find.isNull(0) else { continue }
            witnesses[key]?.known = min(witness.known ?? find.integer(0), find.integer(0))
        }
    }

    private mutating func note(_ key: RecordKey, base: Revision?, isEdit: Bool = false) throws {
        guard case .integer(let id) = key.id, id > 0 else { return }
        var witness =
            try witnesses[key]
            ?? Witness(
                known: outbox.confirmedRevision(key.type, key.id), image: confirmed(key)?.image,
                isOnlyEdited: true)
        if !isEdit { witness.isOnlyEdited = false }
        if let base { witness.known = min(witness.known ?? base, base) }
        witnesses[key] = witness
    }

    // MARK: - After the server's state is taken over

    /// Handles the verdicts on sets that were sent unchanged. The answer names the new ids. If the
    /// server has compacted the set since, it names none, and the old ids are right.
    func noteVerdicts(_ receipts: [Receipt]) throws {
        for receipt in receipts where receipt.outcome == .accepted {
            for (key, given) in taken[receipt.identifier] ?? []
            where try store.permanentID(of: key) == nil {
                guard case .integer(let temporary) = key.id else { continue }
                let row = try store.connection.statement(
                    "INSERT INTO martlet_ids(type, temporary, id) VALUES (?, ?, ?)")
                row.bind(1, integer: key.type)
                row.bind(2, integer: temporary)
                row.bind(3, integer: given)
                try row.run()
            }
        }
    }

    /// Replaces ids whose record is another one in the server's history by ids that no record ever
    /// has. If the user sees a part and the device has no record with such an id, the server may have the
    /// very record that a set edits, so the id stays: the set is refused, and only a person tries it again.
    func giveUpStrays(_ held: inout [HeldSet], seesPart: Bool) throws {
        // Files of earlier releases may have withheld records at and below the next temporary id.
        let lowest = try store.connection.integer(
            "SELECT min(id) FROM martlet_withheld WHERE id BETWEEN \(DeviceTables.lowestID) AND -1")
        var next = try min(store.counter("nextTemporaryID"), (lowest ?? 0) - 1)
        var strays: [RecordKey: Int64] = [:]
        for (key, witness) in witnesses {
            let truth = try confirmed(key)
            let isMeant = LostHistory.isMeant(
                truth, known: witness.known, image: witness.image, common: common)
            let mayBeHidden = seesPart && truth == nil && witness.isOnlyEdited
            guard !isMeant, !mayBeHidden else { continue }
            strays[key] = next
            next -= 1
        }
        guard !strays.isEmpty else { return }
        try store.setState("nextTemporaryID", .integer(next))
        try rewrite(&held, IDRewriter(store: store, assigned: strays))
    }

    /// Returns a change with the present permanent ids of own records.
    func resolved(_ change: StoredChange) throws -> StoredChange {
        var assigned: [RecordKey: Int64] = [:]
        let used = try (change.operation == .create ? [] : [change.key]) + references(of: change)
        for key in used {
            if let permanent = try store.permanentID(of: key) { assigned[key] = permanent }
        }
        var resolved = change
        _ = try IDRewriter(store: store, assigned: assigned).rewrite(&resolved)
        return resolved
    }

    // MARK: - Records

    /// Returns the records to which a change refers.
    private func references(of change: StoredChange) throws -> [RecordKey] {
        guard let type = change.type.map({ store.schema.types[$0] }), let after = change.after,
            !type.references.isEmpty
        else { return [] }
        let attributes = try SyncCoder.decodeAttributes(after)
        return type.references.compactMap { reference in
            guard let value = attributes[reference.attribute], let id = RecordID(value),
                let target = store.schema.index(of: reference.target)
            else { return nil }
            return RecordKey(type: store.numbers[target], id: id)
        }
    }

    /// Returns a record as it was confirmed; nil if there is none.
    func confirmed(_ key: RecordKey) throws -> LostHistory.Truth? {
        if let base = try outbox.base(key.type, key.id) {
            return try base.image.map {
                LostHistory.Truth(
                    revision: base.revision, image: try SyncCoder.decodeAttributes($0))
            }
        }
        guard let type = store.index(ofNumber: key.type),
            let present = try store.tables[type].read(key.id)
        else { return nil }
        // The values are encoded and decoded, because base images are stored in the wire's form.
        let image = try SyncCoder.encode(store.stored(present, type: type).withoutNulls())
        return LostHistory.Truth(
            revision: try outbox.confirmedRevision(key.type, key.id) ?? 0,
            image: try SyncCoder.decodeAttributes(image))
    }

    // MARK: - Rewriting

    private func rewrite(_ held: inout [HeldSet], _ rewriter: IDRewriter) throws {
        guard !rewriter.assigned.isEmpty else { return }
        try Withheld(store: store, now: 0).follow(rewriter.assigned)
        for set in held.indices {
            for index in held[set].changes.indices {
                _ = try rewriter.rewrite(&held[set].changes[index])
            }
        }
        for table in Self.tables {
            for sequence in try sequences(in: table) {
                try rewrite(sequence, in: table, rewriter)
            }
        }
    }

    private func rewrite(
        _ sequence: Int64, in table: String, _ rewriter: IDRewriter
    ) throws {
        var changes = try outbox.changes(of: sequence, in: table)
        var isChanged = false
        for index in changes.indices {
            isChanged = try rewriter.rewrite(&changes[index]) || isChanged
        }
        guard isChanged else { return }
        try store.connection.run("DELETE FROM \(table) WHERE sequence = \(sequence)")
        for change in changes {
            try outbox.insertChange(change, sequence: sequence, in: table)
            guard table == "martlet_changes" else { continue }
            try outbox.noteReferences(of: change, sequence: sequence)
        }
    }

    private func sequences(in table: String) throws -> [Int64] {
        let rows = try store.connection.statement("SELECT DISTINCT sequence FROM \(table)")
        return try rows.rows { (row) throws(SQLiteError) in row.integer(0) }
    }
}
