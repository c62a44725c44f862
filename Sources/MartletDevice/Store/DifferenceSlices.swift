package import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Applies staged differences to the tables slice by slice.
///
/// A slice adds the rows that no own edit touches. These rows are then newer than the device's
/// revision, and the others are not. The device stays at its revision, and every confirmed row is
/// as it was at some revision from there to the end of the differences. The last transaction brings
/// the new revision and applies the rest: rows under own edits, rows refused so far, and the
/// verdicts on own sets.
struct DifferenceSlices {
    /// The staged pieces that are not applied yet, the last first.
    fileprivate(set) var waiting: [Int64]
    /// The records left to the last transaction: records of own sets that have a verdict, and
    /// records of which an earlier piece has left a row.
    fileprivate var left: [String: Set<RecordID>]
}

extension DeviceStore {
    /// The revision up to which rows in the tables may be newer than the device's revision; nil if
    /// none is. While it is set, the last transaction is still to come.
    package var slicedUpTo: Revision? {
        get throws { try standing.slicedUpTo }
    }

    /// Returns the staged differences, if they can be applied in slices.
    /// - Parameter answer: The answer that follows them, with the verdicts on own sets.
    /// - Returns: Nil if there is little to apply, or if the difference leads through states that
    ///   only follow from each other.
    func differenceSlices(_ answer: SyncAnswer) throws -> DifferenceSlices? {
        let standing = try standing
        guard standing.rejoining == nil, standing.missing == nil,
            case .tables(let done) = standing.staged?.base
        else { return nil }
        let inbox = Inbox(store: applying)
        let parts = try inbox.parts()
        let pieces = parts.prefix(while: \.isDifference)
        guard pieces.count > 1, !answer.changeSets.contains(where: \.isDifference),
            !parts.dropFirst(pieces.count).contains(where: \.isDifference)
        else { return nil }
        let kept = parts.filter { !$0.isDifference || $0.number <= done }
        var left: [String: Set<RecordID>] = [:]
        for set in try kept.map({ try inbox.content(of: $0) }) + answer.changeSets {
            for changes in set.types {
                left[changes.name, default: []].formUnion(
                    changes.create + changes.update + changes.delete)
            }
        }
        let waiting = pieces.map(\.number).filter { $0 > done }
        return waiting.isEmpty ? nil : DifferenceSlices(waiting: waiting.reversed(), left: left)
    }

    /// Applies the next piece in one transaction.
    /// - Returns: Nil if the file has changed since this was read; nothing was done then.
    func applySlice(
        _ slices: inout DifferenceSlices, owner: String, now: Int64
    ) throws -> RebaseReport? {
        guard let number = slices.waiting.last else { return nil }
        let left = slices.left
        let applied = try mendingIndexes {
            try apply(number, without: left, owner: owner, now: now)
        }
        guard let applied else { return nil }
        slices.left = applied.left
        slices.waiting.removeLast()
        return applied.report
    }

    private func apply(
        _ number: Int64, without left: [String: Set<RecordID>], owner: String, now: Int64
    ) throws -> (report: RebaseReport, left: [String: Set<RecordID>])? {
        try changeStanding { standing -> (report: RebaseReport, left: [String: Set<RecordID>])? in
            let inbox = Inbox(store: applying)
            guard try leaseOfOther(than: owner, now: now) == nil, standing.staged != nil,
                standing.cursor.revision == asked.cursor,
                let part = try inbox.parts().first(where: { $0.number == number })
            else { return nil }
            try closeExternalCapture(applying, now: now)
            try applying.setCapture(false)
            let set = try inbox.content(of: part)
            var slice = DifferenceSlice(store: applying, registry: registry, now: now)
            var left = left
            try slice.apply(set, without: &left)
            try inbox.replace(part, with: slice.left)
            standing.apply(slice: number, of: set.revision)
            try purge(slice.hidden, had: slice.hidden, &standing)
            try applying.setCapture(true)
            observer?.applyingWillCommit(slice.report)
            return (slice.report, left)
        }
    }
}

/// One piece of a difference, applied to the tables alongside own edits.
private struct DifferenceSlice {
    private let store: LocalStore
    private var applier: RemoteApplier
    private(set) var report = RebaseReport()
    /// The rest of the piece. It stays in the inbox even if it is empty, because it names the
    /// revision of the tables.
    private(set) var left = ChangeSet()
    /// The records that left the user's view.
    private(set) var hidden: Set<RecordKey> = []

    init(store: LocalStore, registry: ModelRegistry, now: Int64) {
        self.store = store
        applier = RemoteApplier(store: store, registry: registry, now: now)
    }

    /// Applies the rows of a piece, apart from those to leave out.
    /// - Parameter others: The records to leave out; records that are left out now are added.
    /// - Throws: Any error that is no fault of the rows.
    mutating func apply(
        _ set: ChangeSet, without others: inout [String: Set<RecordID>]
    ) throws {
        guard let revision = set.revision else {
            throw StoreError(.inconsistent, "The server sent a part without its revision.")
        }
        var taken = set
        var kept = set
        for index in set.types.indices {
            let changes = set.types[index]
            let isLeft = try others[changes.name, default: []].union(own(changes))
            taken.types[index] = changes.filtered { !isLeft.contains($0) }
            kept.types[index] = changes.filtered { isLeft.contains($0) }
        }
        try leave(collisions(taken, revision), of: &taken, to: &kept)
        try leave(refused(taken, revision), of: &taken, to: &kept)
        kept.types.removeAll { $0.update.isEmpty && $0.delete.isEmpty }
        for changes in kept.types {
            others[changes.name, default: []].formUnion(changes.update + changes.delete)
        }
        left = kept
        hidden = try taken.hidden(in: store)
        report.keptAside = applier.keptAside.added.list
    }

    /// Moves records from the rows to apply to the rest.
    private func leave(
        _ records: [Set<RecordID>], of taken: inout ChangeSet, to kept: inout ChangeSet
    ) {
        for (index, ids) in records.enumerated() where !ids.isEmpty {
            for id in ids { kept.types[index].add(id, of: taken.types[index]) }
            taken.types[index] = taken.types[index].filtered { !ids.contains($0) }
        }
    }

    /// Writes rows; if they are refused together, one by one.
    /// - Returns: The refused records, by type. They are few, and may fit once everything has been
    ///   applied.
    private mutating func refused(
        _ set: ChangeSet, _ revision: Revision
    ) throws -> [Set<RecordID>] {
        var refused = set.types.map { _ in Set<RecordID>() }
        guard try !put(set, revision) else { return refused }
        for (index, changes) in set.types.enumerated() {
            for id in changes.delete + changes.update {
                var single = set
                single.types = [changes.filtered { $0 == id }]
                if try !put(single, revision) { refused[index].insert(id) }
            }
        }
        return refused
    }

    /// Returns the records that have a unique value of a record that is confirmed under an own
    /// edit.
    ///
    /// The edit may have given the value up, so that the row fits into the table. But then the edit
    /// could no longer be undone. The tables stay unchanged.
    /// - Complexity: O(*n*) in the edited records of the types that have a UNIQUE constraint.
    private mutating func collisions(
        _ set: ChangeSet, _ revision: Revision
    ) throws -> [Set<RecordID>] {
        let edited = try set.types.compactMap { changes -> Int64? in
            guard !changes.update.isEmpty, try hasUniqueValues(changes.name) else { return nil }
            return try store.number(ofType: changes.name)
        }
        let rows = try edited.flatMap { try bases($0) }
        guard !rows.isEmpty else { return set.types.map { _ in [] } }
        let (before, reported) = (applier, report)
        try store.connection.run("SAVEPOINT martlet_confirmed")
        for row in rows {
            guard let type = store.index(ofNumber: row.type) else { continue }
            _ = try store.tables[type].delete(row.id)
        }
        for row in rows {
            guard let image = row.image else { continue }
            try applier.restore(row.type, row.id, image, revision: row.revision)
        }
        let refused = try refused(set, revision)
        try store.connection.run("ROLLBACK TO martlet_confirmed")
        try store.connection.run("RELEASE martlet_confirmed")
        (applier, report) = (before, reported)
        return refused
    }

    private func hasUniqueValues(_ type: String) throws -> Bool {
        let find = try store.connection.statement(
            "SELECT 1 FROM pragma_index_list(?) WHERE \"unique\" AND origin <> 'pk' LIMIT 1")
        defer { find.reset() }
        find.bind(1, text: type)
        return try find.step()
    }

    /// Returns the confirmed records of a type that are under own edits.
    private func bases(
        _ number: Int64
    ) throws -> [(type: Int64, id: RecordID, image: Attributes?, revision: Revision)] {
        let rows = try store.connection.statement(
            "SELECT id, image, revision FROM martlet_base WHERE type = ?")
        defer { rows.reset() }
        rows.bind(1, integer: number)
        var bases: [(type: Int64, id: RecordID, image: Attributes?, revision: Revision)] = []
        while try rows.step() {
            let image = rows.isNull(1) ? nil : try SyncCoder.decodeAttributes(rows.blob(1))
            bases.append((number, try rows.recordID(0), image, rows.integer(2)))
        }
        return bases
    }

    /// Writes all rows, or none of them if one is refused.
    /// - Returns: Whether they were written.
    private mutating func put(_ set: ChangeSet, _ revision: Revision) throws -> Bool {
        guard set.recordCount > 0 else { return true }
        let before = applier
        guard try applier.attempt({ try $0.apply(set, revision: revision) }) == nil else {
            applier = before
            return false
        }
        report.remoteRecords += set.recordCount
        for changes in set.types where store.schema.index(of: changes.name) != nil {
            report.changedTypes.insert(changes.name)
            if !changes.delete.isEmpty {
                report.removed[changes.name, default: []].formUnion(changes.delete)
            }
        }
        return true
    }

    /// Returns those of these records that own edits change, both queued and withheld ones.
    private func own(_ changes: TypeChanges) throws -> [RecordID] {
        guard let number = try store.number(ofType: changes.name) else { return [] }
        let find = try store.connection.statement(
            """
            SELECT 1 WHERE EXISTS (SELECT 1 FROM martlet_changes WHERE type = ?1 AND id = ?2)
                OR EXISTS (SELECT 1 FROM martlet_withheld WHERE type = ?1 AND id = ?2)
            """)
        defer { find.reset() }
        return try (changes.update + changes.delete).filter { id in
            find.rewind()
            find.bind(1, integer: number)
            find.bind(2, id)
            return try find.step()
        }
    }
}

extension TypeChanges {
    /// Returns the set with only those records for which a condition holds.
    fileprivate func filtered(_ isWanted: (RecordID) -> Bool) -> TypeChanges {
        var changes = TypeChanges(
            name: name, update: update.filter(isWanted), delete: delete.filter(isWanted),
            entries: entries.filter { isWanted($0.id) })
        changes.hidden = hidden.filter(isWanted)
        return changes
    }

    fileprivate mutating func add(_ id: RecordID, of changes: TypeChanges) {
        if changes.delete.contains(id) { delete.append(id) } else { update.append(id) }
        if changes.hidden.contains(id) { hidden.append(id) }
        entries += changes.entries.filter { $0.id == id }
    }
}

extension ChangeSet {
    /// Returns a difference in pieces of about the given number of records, which can be applied
    /// one after another.
    func pieces(of records: Int) -> [ChangeSet] {
        guard isDifference, recordCount > records else { return [self] }
        var pieces: [ChangeSet] = []
        var room = 0
        func begin(_ name: String) {
            if room <= 0 {
                var piece = self
                piece.types = []
                pieces.append(piece)
                room = records
            }
            if pieces[pieces.count - 1].types.last?.name != name {
                pieces[pieces.count - 1].types.append(TypeChanges(name: name))
            }
        }
        for changes in types {
            let (deleted, hidden) = (Set(changes.delete), Set(changes.hidden))
            for entry in changes.entries where !deleted.contains(entry.id) {
                begin(changes.name)
                let (piece, type) = (pieces.count - 1, pieces[pieces.count - 1].types.count - 1)
                pieces[piece].types[type].update.append(entry.id)
                pieces[piece].types[type].entries.append(entry)
                room -= 1
            }
            for id in changes.delete {
                begin(changes.name)
                let (piece, type) = (pieces.count - 1, pieces[pieces.count - 1].types.count - 1)
                pieces[piece].types[type].delete.append(id)
                if hidden.contains(id) { pieces[piece].types[type].hidden.append(id) }
                room -= 1
            }
        }
        return pieces
    }
}
