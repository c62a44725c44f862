internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

extension DeviceStore {
    /// The device's progress, read with one statement.
    var standing: Standing {
        get throws { try Standing(applying) }
    }

    /// Changes the standing in one transaction, together with everything that `body` does.
    func changeStanding<Result>(_ body: (inout Standing) throws -> Result) throws -> Result {
        try inApplyingTransaction {
            let before = try standing
            var after = before
            let result = try body(&after)
            try after.write(to: applying, over: before)
            return result
        }
    }
}

/// Reads the standing from rows of `martlet_state`, and writes it there. It skips a row that has a
/// meaning only with another one that the file does not have.
extension Standing {
    private enum Key: String, CaseIterable {
        case revision, lineage, dataSet
        case stagedRevision, stagedLineage, stagedCut, stagedSnapshot, slicedPart
        case slicedRevision
        case seedingParts, seedingManifest
        case refetchRevision = "anewRevision"
        case refetchAsked = "anewAsked"
        case formerRevision = "anewGoal"
        case formerLineage = "anewLineage"
        case partOfRevision, partOfLineage
        case rejoinFrom, rejoinQueued, rejoinView
        case traces, tracesFault, applyFault, view, removedCount, removedSum, receiptOwed, rules
    }

    private static let query = """
        SELECT name, value FROM martlet_state WHERE value IS NOT NULL AND name IN (
        """ + Key.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ") + ")"

    /// Reads the standing.
    /// - Throws: `StoreError` `.inconsistent` if the file has lost its revision.
    init(_ store: LocalStore) throws {
        let rows = try store.connection.statement(Self.query)
        defer { rows.reset() }
        var values: [String: String] = [:]
        while try rows.step() { values[rows.text(0)] = rows.text(1) }
        func text(_ key: Key) -> String? { values[key.rawValue] }
        func integer(_ key: Key) -> Int64? { text(key).flatMap { Int64($0) } }

        revision = try integer(.revision) ?? store.counter(Key.revision.rawValue)
        lineage = text(.lineage)
        dataSet = text(.dataSet)
        if let revision = integer(.stagedRevision) {
            let snapshot = try text(.stagedSnapshot).map {
                try SyncCoder.decodeSnapshotManifest(Array($0.utf8))
            }
            staged = Staged(
                revision: revision, lineage: text(.stagedLineage), isCut: text(.stagedCut) != nil,
                base: snapshot.map { .snapshot($0) }
                    ?? .tables(slicedPart: integer(.slicedPart) ?? 0))
        }
        slicedUpTo = integer(.slicedRevision)
        missing = try MissingParts(names: text(.seedingParts), manifest: text(.seedingManifest))
        refetching = integer(.refetchRevision).map {
            Refetching(goal: $0, isConfirmed: text(.refetchAsked) != nil)
        }
        if let lineage = text(.formerLineage),
            let revision = integer(.formerRevision) ?? refetching?.goal
        {
            former = HistoryMark(revision: revision, lineage: lineage)
        }
        if let lineage = text(.partOfLineage), let revision = integer(.partOfRevision) {
            partOf = HistoryMark(revision: revision, lineage: lineage)
        }
        rejoining = integer(.rejoinFrom)
        queuedAgain = integer(.rejoinQueued) ?? 0
        isForView = text(.rejoinView) != nil
        tracesFrom = integer(.traces)
        (tracesFault, applyFault) = (text(.tracesFault), text(.applyFault))
        view = integer(.view)
        rules = text(.rules)
        removed = RangeHash(
            count: integer(.removedCount) ?? 0,
            sum: UInt64(bitPattern: integer(.removedSum) ?? 0))
        owesReceipt = text(.receiptOwed) != nil
    }

    /// Stores what differs from the standing that was read, in the caller's transaction.
    func write(to store: LocalStore, over before: Standing) throws {
        for (new, old) in zip(rows, before.rows) where new.value != old.value {
            try store.setState(new.key.rawValue, new.value ?? .null)
        }
        if staged?.snapshot != before.staged?.snapshot {
            try put(.stagedSnapshot, staged?.snapshot, to: store)
        }
        guard missing != before.missing else { return }
        let names = missing?.names.sorted().joined(separator: "\n")
        try store.setState(Key.seedingParts.rawValue, names.map { .text($0) } ?? .null)
        try put(.seedingManifest, missing?.manifest, to: store)
        if missing == nil { try PendingParts(store: store).forgetPassed() }
    }

    private func put(_ key: Key, _ manifest: SnapshotManifest?, to store: LocalStore) throws {
        let text = manifest.map { String(decoding: SyncCoder.encode($0), as: UTF8.self) }
        try store.setState(key.rawValue, text.map { .text($0) } ?? .null)
    }

    /// The rows apart from those that hold a manifest or parts of one.
    private var rows: KeyValuePairs<Key, Value?> {
        func text(_ text: String?) -> Value? { text.map { .text($0) } }
        func integer(_ number: Int64?) -> Value? { number.map { .integer($0) } }
        var slicedPart: Int64?
        if case .tables(let part) = staged?.base, part > 0 { slicedPart = part }
        return [
            .revision: integer(revision), .lineage: text(lineage), .dataSet: text(dataSet),
            .stagedRevision: integer(staged?.revision), .stagedLineage: text(staged?.lineage),
            .stagedCut: integer(staged?.isCut == true ? 1 : nil), .slicedPart: integer(slicedPart),
            .slicedRevision: integer(slicedUpTo), .refetchRevision: integer(refetching?.goal),
            .refetchAsked: integer(refetching?.isConfirmed == true ? 1 : nil),
            .formerRevision: integer(former?.revision), .formerLineage: text(former?.lineage),
            .partOfRevision: integer(partOf?.revision), .partOfLineage: text(partOf?.lineage),
            .rejoinFrom: integer(rejoining),
            .rejoinQueued: integer(queuedAgain == 0 ? nil : queuedAgain),
            .rejoinView: integer(isForView ? 1 : nil), .traces: integer(tracesFrom),
            .tracesFault: text(tracesFault), .applyFault: text(applyFault), .view: integer(view),
            .rules: text(rules),
            .receiptOwed: integer(owesReceipt ? 1 : nil),
            .removedCount: integer(removed.count == 0 ? nil : removed.count),
            .removedSum: integer(removed.sum == 0 ? nil : Int64(bitPattern: removed.sum)),
        ]
    }
}
