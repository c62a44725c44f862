import MartletModel
import MartletRules

/// Tells which people a transaction's changes concern, without asking for each of them.
///
/// It keeps in memory, for each type view that was computed since the server began, by which values of
/// which columns its records are found (`RowSelection`), and which rows were looked up to find these
/// values; and, for each record, the values that it had in such columns. A change of a record thus
/// leads to the type views that it concerns by the values before and after it. All other type views stay
/// as they are.
final class ViewIndex {
    /// The knowledge about a type view.
    struct State {
        let type: Int
        /// The revision of the records from which its members were computed.
        fileprivate(set) var revision: Revision
        fileprivate(set) var selection: RowSelection
        /// The records of its type that changed since then, and were or are among those that it may show. They
        /// are not noted for a view without keys.
        fileprivate(set) var changed: Set<RecordID> = []
        /// True if rows have changed that the selection was computed from.
        fileprivate(set) var isSelectionOld = false
        /// True if any of its rows may be judged in another way.
        fileprivate(set) var isOld = false
        fileprivate var keys: Set<Key> = []
        fileprivate var lookups: Set<Key> = []
        /// The types all of whose rows were read for the selection.
        fileprivate var typesRead: Set<Int> = []
        fileprivate var people: Set<Principal> = []
    }

    /// The value of a column. Two values may have the same key.
    fileprivate struct Key: Hashable {
        let type: Int
        let column: Int
        let hash: Int
    }

    /// The most type views that are kept, and records that are noted for one of them.
    private static let (mostViews, mostChanged) = (200_000, 20_000)

    /// The columns whose values are kept, by type; without the key.
    private var columns: [Int: [Int]] = [:]
    /// The hashes of the values of records, by type, in the order of `columns`.
    private var values: [Int: [[RecordID: Int]]] = [:]
    /// The revision up to which everything is known; nil if the index is empty.
    private(set) var revision: Revision?
    /// The revision up to which it is known whom changes concern.
    private var committed: Revision = 0
    private var states: [Int64: State] = [:]
    private var viewsByKey: [Key: Set<Int64>] = [:]
    private var viewsByLookup: [Key: Set<Int64>] = [:]
    /// The type views that any record of a type concerns, because their rows have no keys; those whose
    /// selection read all of a type; and those whose rows read it.
    private var viewsWithoutKeys: [Int: Set<Int64>] = [:]
    private var viewsReading: [Int: Set<Int64>] = [:]
    private var viewsReadingByRow: [Int: Set<Int64>] = [:]
    /// The people who see all of a type.
    private var peopleSeeingAll: [Int: Set<Principal>] = [:]
    private var known: Set<Principal> = []
    /// The people whom changes concern that are not committed yet.
    private var concerned: Set<Principal> = []
    /// True if type views were dropped, so that nobody knows whom the changes concern.
    private var isIncomplete = true
    /// True if something was noted that is not committed yet.
    private var isUncommitted = false
    /// How many rows were judged for type views.
    var judged = 0

    /// Forgets everything.
    func reset() {
        let judged = judged
        (columns, values, revision) = ([:], [:], nil)
        forgetViews()
        (isUncommitted, self.judged) = (false, judged)
    }

    /// Forgets what a transaction noted that was rolled back.
    func rollBack() {
        if isUncommitted { reset() }
    }

    private func forgetViews() {
        states = [:]
        (viewsByKey, viewsByLookup) = ([:], [:])
        (viewsWithoutKeys, viewsReading, viewsReadingByRow) = ([:], [:], [:])
        (peopleSeeingAll, known, concerned, isIncomplete) = ([:], [], [], true)
    }

    /// Returns the people whom the changes of the transaction concern, once it is committed, or nil if nobody
    /// knows; and the revision after which these changes begin.
    func takeConcerned() -> (people: Set<Principal>?, after: Revision) {
        defer {
            (concerned, isIncomplete, isUncommitted) = ([], revision == nil, false)
            committed = revision ?? 0
        }
        return (isIncomplete ? nil : concerned, committed)
    }

    // MARK: - Changes

    /// Brings the index up to the records of the open transaction.
    ///
    /// - Parameter isFirst: Whether the index is made if it is empty.
    func follow(
        _ storage: any ServerStorage, _ policies: RulesProgram, makes isFirst: Bool
    ) throws(StorageFault) {
        let head = storage.head.revision
        guard let revision else {
            if isFirst { try make(storage, policies) }
            return
        }
        guard revision != head else { return }
        isUncommitted = true
        for type in try storage.views.changedTypes(after: revision).sorted() {
            try follow(type, after: revision, storage)
        }
        self.revision = head
    }

    private func follow(
        _ type: Int, after revision: Revision, _ storage: any ServerStorage
    ) throws(StorageFault) {
        for view in viewsWithoutKeys[type] ?? [] { concern(view) { _ in } }
        for view in viewsReading[type] ?? [] { concern(view) { $0.isSelectionOld = true } }
        for view in viewsReadingByRow[type] ?? [] { concern(view) { $0.isOld = true } }
        concerned.formUnion(peopleSeeingAll[type] ?? [])
        guard let columns = columns[type] else { return }
        let ids = try storage.views.changedRecords(of: type, after: revision)
        var rows: [RecordID: RuleRow] = [:]
        if !columns.isEmpty {
            for row in try storage.rows(of: type, where: 0, isAmong: ids.map(\.value)) {
                rows[RecordAddress(type, row).id] = row
            }
        }
        for id in ids {
            if let hash = Self.hash(id.value) { note(Key(type: type, column: 0, hash: hash), id) }
            for (position, column) in columns.enumerated() {
                let old = values[type]?[position][id]
                let new = rows[id].flatMap { Self.hash($0[column]) }
                for hash in Set([old, new].compactMap(\.self)) {
                    note(Key(type: type, column: column, hash: hash), id)
                }
                if old != new { values[type]?[position][id] = new }
            }
        }
    }

    /// Notes that a record had, or has, a value.
    private func note(_ key: Key, _ id: RecordID) {
        for view in viewsByKey[key] ?? [] {
            concern(view) { state in
                guard !state.isOld else { return }
                state.changed.insert(id)
                if state.changed.count > Self.mostChanged {
                    (state.isOld, state.changed) = (true, [])
                }
            }
        }
        for view in viewsByLookup[key] ?? [] { concern(view) { $0.isSelectionOld = true } }
    }

    private func concern(_ view: Int64, _ change: (inout State) -> Void) {
        guard var state = states.removeValue(forKey: view) else { return }
        change(&state)
        concerned.formUnion(state.people)
        states[view] = state
    }

    private func make(
        _ storage: any ServerStorage, _ policies: RulesProgram
    ) throws(StorageFault) {
        isUncommitted = true
        columns = policies.lookupColumns().mapValues { $0.subtracting([0]).sorted() }
        for (type, columns) in columns where !columns.isEmpty {
            var found: [[RecordID: Int]] = columns.map { _ in [:] }
            try storage.views.visitRows(of: type, where: nil) { row in
                let id = RecordAddress(type, row).id
                for (position, column) in columns.enumerated() {
                    found[position][id] = Self.hash(row[column])
                }
                return true
            }
            values[type] = found
        }
        revision = storage.head.revision
        isIncomplete = true
    }

    /// Returns a number that is equal for equal integers and for equal texts; nil for other values, to which
    /// no key is equal.
    private static func hash(_ value: Value) -> Int? {
        switch value {
        case .null, .boolean: return nil
        case .integer(let number): return Int(truncatingIfNeeded: number)
        case .real(let number): return Int(exactly: number)
        case .text(let text):
            // FNV-1a.
            var hash: UInt64 = 0xcbf2_9ce4_8422_2325
            for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            return Int(truncatingIfNeeded: hash)
        }
    }

    // MARK: - Type views

    /// Returns what is known of a type view; nil if that is of another revision than the storage's.
    func state(of view: TypeView) -> State? {
        guard let state = states[view.number], state.revision == view.revision else { return nil }
        return state
    }

    /// Notes that a type view was brought to the present revision, and that its selection is the same.
    func advance(_ view: Int64) {
        guard let revision else { return }
        isUncommitted = true
        states[view]?.revision = revision
        states[view]?.changed = []
    }

    /// Notes that a type view was computed by a selection.
    ///
    /// - Parameter lookups: The look-ups that the selection took.
    func keep(
        _ view: Int64, of type: Int, _ selection: RowSelection,
        lookups: some Sequence<RowLookups.Lookup>
    ) {
        guard let revision else { return }
        isUncommitted = true
        if states.count >= Self.mostViews, states[view] == nil { forgetViews() }
        var state = State(type: type, revision: revision, selection: selection)
        for (column, values) in selection.keys ?? [:] {
            for hash in values.compactMap(Self.hash) {
                state.keys.insert(Key(type: type, column: column, hash: hash))
            }
        }
        for lookup in lookups {
            let isKept = lookup.column == 0 || columns[lookup.type]?.contains(lookup.column) == true
            if isKept, let hash = lookup.value.flatMap(Self.hash) {
                state.lookups.insert(Key(type: lookup.type, column: lookup.column, hash: hash))
            } else {
                state.typesRead.insert(lookup.type)
            }
        }
        let old = states[view]
        state.people = old?.people ?? []
        Self.move(view, &viewsByKey, from: old?.keys, to: state.keys)
        Self.move(view, &viewsByLookup, from: old?.lookups, to: state.lookups)
        Self.move(view, &viewsReading, from: old?.typesRead, to: state.typesRead)
        Self.move(
            view, &viewsReadingByRow, from: old?.selection.typesReadByRow,
            to: selection.typesReadByRow)
        Self.move(
            view, &viewsWithoutKeys, from: old.map { $0.selection.keys == nil ? [type] : [] },
            to: selection.keys == nil ? [type] : [])
        states[view] = state
    }

    /// Forgets a type view whose selection cannot be computed.
    func forget(_ view: Int64) {
        isUncommitted = true
        guard let old = states.removeValue(forKey: view) else { return }
        Self.move(view, &viewsByKey, from: old.keys, to: [])
        Self.move(view, &viewsByLookup, from: old.lookups, to: [])
        Self.move(view, &viewsReading, from: old.typesRead, to: [])
        Self.move(view, &viewsReadingByRow, from: old.selection.typesReadByRow, to: [])
        Self.move(view, &viewsWithoutKeys, from: [old.type], to: [])
        // Listeners of these people are told of every change from now on.
        known.subtract(old.people)
        if !old.people.isEmpty { isIncomplete = true }
    }

    private static func move<Name: Hashable>(
        _ view: Int64, _ views: inout [Name: Set<Int64>], from old: Set<Name>?, to new: Set<Name>
    ) {
        let old = old ?? []
        guard old != new else { return }
        for name in old where !new.contains(name) {
            views[name]?.remove(view)
            if views[name]?.isEmpty == true { views[name] = nil }
        }
        for name in new where !old.contains(name) { views[name, default: []].insert(view) }
    }

    /// Notes that a person has a view, and returns whether the index tells which changes concern it.
    func note(_ principal: Principal, has view: View) -> Bool {
        guard revision == view.revision else { return false }
        for part in view.parts where part > View.whole && states[part] == nil { return false }
        guard known.insert(principal).inserted else { return true }
        isUncommitted = true
        for (type, part) in view.parts.enumerated() {
            if part == View.whole {
                peopleSeeingAll[type, default: []].insert(principal)
            } else if part > View.whole {
                states[part]?.people.insert(principal)
            }
        }
        return true
    }
}

@available(*, unavailable)
extension ViewIndex: Sendable {}
