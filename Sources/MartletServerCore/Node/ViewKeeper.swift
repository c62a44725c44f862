import MartletModel
import MartletRules
import OpenSSLKit

/// Brings the views of people up to the records that a transaction has led to.
///
/// A type view is computed from the records that changed since it was last, as far as they concern it. If
/// rows changed that its policies read, those of its rows are judged again that the `ViewIndex` names,
/// or else all rows that the person may see.
struct ViewKeeper {
    private let storage: any ServerStorage
    private let policies: RulesProgram?
    private let index: ViewIndex
    private let now: Int64
    /// The numbers of the type views that are up to date.
    private var current: Set<Int64> = []
    /// The types with changed records, by the revision after which they changed.
    private var changed: [Revision: Set<Int>] = [:]

    /// - Parameter now: Milliseconds since 1970.
    init(_ storage: any ServerStorage, _ policies: RulesProgram?, _ index: ViewIndex, now: Int64) {
        self.storage = storage
        self.policies = policies
        self.index = index
        self.now = now
    }

    /// A person's view whose type views may be behind.
    struct Outline {
        let number: Int64
        let parts: [Int64]
        /// The type views among the parts, with their types.
        fileprivate let behind: [(type: Int, view: TypeView)]
        fileprivate let rights: RowRights?

        /// A name that stands for all that the view depends on besides the records.
        var name: String {
            var bytes: [UInt8] = []
            for extent in rights?.extents() ?? [] {
                switch extent {
                case .whole: bytes.append(0)
                case .nothing: bytes.append(1)
                case .judged(let key): bytes += [2] + key.digest
                }
            }
            return Hexadecimal.text(SHA256.digest(bytes))
        }
    }

    /// Returns a person's view as it is named, before its members are computed.
    func outline(of principal: Principal) throws(StorageFault) -> Outline {
        guard let policies else {
            return Outline(
                number: View.everything, parts: storage.schema.types.map { _ in View.whole },
                behind: [], rights: nil)
        }
        let rights = RowRights(policies, of: principal, now: now)
        let extents = rights.extents()
        let keys = extents.compactMap { extent -> TypeViewKey? in
            if case .judged(let key) = extent { key } else { nil }
        }
        let views = try storage.views.typeViews(keys)
        var next = views.makeIterator()
        let parts = extents.map { extent in
            switch extent {
            case .whole: View.whole
            case .nothing: View.nothing
            case .judged: next.next()?.number ?? View.nothing
            }
        }
        let isWhole = parts.allSatisfy { $0 == View.whole }
        return Outline(
            number: isWhole ? View.everything : try storage.views.viewNumber(of: parts, now: now),
            parts: parts, behind: zip(keys, views).map { ($0.type, $1) }, rights: rights)
    }

    /// Returns the view at the end of the log, after computing its members.
    mutating func view(_ outline: Outline) throws(StorageFault) -> View {
        let head = storage.head.revision
        if let policies, !outline.behind.isEmpty {
            try index.follow(storage, policies, makes: true)
        }
        for (type, view) in outline.behind {
            guard let rights = outline.rights, current.insert(view.number).inserted,
                view.revision != head || index.state(of: view) == nil
            else { continue }
            try advance(view, of: type, to: head, rights)
        }
        return View(number: outline.number, parts: outline.parts, revision: head)
    }

    private mutating func advance(
        _ view: TypeView, of type: Int, to head: Revision, _ rights: RowRights
    ) throws(StorageFault) {
        var judge = TypeViewJudge(storage, view, of: type)
        if let state = index.state(of: view), !state.isOld, !state.isSelectionOld {
            let ids = try changedRecords(state, since: view.revision)
            if !ids.isEmpty {
                try lookingUp(rights) { try judge.judge(ids, by: $1) }
            }
            index.advance(view.number)
        } else {
            try advanceSelection(view, of: type, rights, &judge)
        }
        index.judged += judge.count
        // On a full disk, people can be answered whose views are as the storage has them.
        guard view.revision != head || !judge.shown.isEmpty || !judge.hidden.isEmpty else { return }
        try storage.views.advance(
            view.number, type: type, to: head, shown: judge.shown, hidden: judge.hidden,
            // No device had a view that was never computed, so nothing moved.
            moved: view.revision == nil ? 0 : head)
    }

    /// Computes the selection of a type view again, and judges the rows that it judges in another way.
    private mutating func advanceSelection(
        _ view: TypeView, of type: Int, _ rights: RowRights, _ judge: inout TypeViewJudge
    ) throws(StorageFault) {
        var readsChange = true
        if let revision = view.revision, !view.isOutdated {
            let changed = try changedTypes(after: revision)
            readsChange = !changed.isDisjoint(with: rights.program.typesRead(by: type))
        }
        let known = view.isOutdated ? nil : index.state(of: view)
        let (storage, index) = (storage, index)
        try lookingUp(rights) { lookups, evaluator in
            let selection = try evaluator.selection(of: type)
            if let selection {
                index.keep(view.number, of: type, selection, lookups: lookups.done)
            } else {
                index.forget(view.number)
            }
            if let known, !known.isOld,
                case .rows(let values)? = selection?.difference(from: known.selection)
            {
                let ids = try Self.changedRecords(known, since: view.revision, storage)
                try judge.judge(ids, by: evaluator)
                for (column, values) in values where !values.isEmpty {
                    try judge.judge(where: column, isAmong: values, by: evaluator)
                }
            } else if let revision = view.revision, known == nil, !readsChange {
                try judge.judge(
                    storage.views.changedRecords(of: type, after: revision), by: evaluator)
            } else {
                try judge.judgeAll(among: selection?.keys, by: evaluator)
            }
        }
    }

    private func changedRecords(
        _ state: ViewIndex.State, since revision: Revision?
    ) throws(StorageFault) -> [RecordID] {
        try Self.changedRecords(state, since: revision, storage)
    }

    /// Returns the changed records that may have entered a type view or left it.
    private static func changedRecords(
        _ state: ViewIndex.State, since revision: Revision?, _ storage: any ServerStorage
    ) throws(StorageFault) -> [RecordID] {
        guard state.selection.keys == nil, let revision else { return Array(state.changed) }
        return try storage.views.changedRecords(of: state.type, after: revision)
    }

    /// Calls `body` with the rights of a person over the rows of the storage.
    private func lookingUp(
        _ rights: RowRights, _ body: (RowLookups, RuleEvaluator) throws -> Void
    ) throws(StorageFault) {
        try RowLookups.working(storage.rows(of:where:isAmong:)) { lookups in
            try body(lookups, rights.evaluator(over: lookups))
        }
    }

    private mutating func changedTypes(after revision: Revision) throws(StorageFault) -> Set<Int> {
        if let known = changed[revision] { return known }
        let found = try storage.views.changedTypes(after: revision)
        changed[revision] = found
        return found
    }
}

/// Judges rows for a type view, and collects those that enter it or leave it.
struct TypeViewJudge {
    private let storage: any ServerStorage
    private let view: TypeView
    private let type: Int
    /// The records that it shows now and did not before, and the other way round.
    private(set) var shown: [RecordID] = []
    private(set) var hidden: [RecordID] = []
    /// How many rows were judged.
    private(set) var count = 0
    /// The records that were judged, with whether it shows them.
    private var judged: [RecordID: Bool] = [:]

    init(_ storage: any ServerStorage, _ view: TypeView, of type: Int) {
        self.storage = storage
        self.view = view
        self.type = type
    }

    private mutating func note(_ id: RecordID, was: Bool, isNow: Bool) {
        guard was != isNow else { return }
        if isNow { shown.append(id) } else { hidden.append(id) }
    }

    /// Judges the records with these ids, also if they are gone.
    mutating func judge(_ ids: [RecordID], by evaluator: RuleEvaluator) throws {
        let wanted = Set(ids)
        var found: [RecordID: Bool] = [:]
        for row in try storage.rows(of: type, where: 0, isAmong: ids.map(\.value)) {
            let id = RecordAddress(type, row).id
            guard wanted.contains(id) else { continue }
            found[id] = try evaluator.maySelect(row, of: type)
        }
        for id in wanted { found[id] = found[id] ?? false }
        try note(found)
    }

    /// Judges the rows with one of these values of a column.
    mutating func judge(
        where column: Int, isAmong values: Set<Value>, by evaluator: RuleEvaluator
    ) throws {
        try note(
            try visit(where: (column, Array(values))) { [judged] found, id, row in
                guard judged[id] == nil, found[id] == nil else { return }
                found[id] = try evaluator.maySelect(row, of: type)
            })
    }

    private mutating func note(_ found: [RecordID: Bool]) throws {
        count += found.count
        judged.merge(found) { old, _ in old }
        let members = try storage.views.members(
            of: view.number, type: type, among: Array(found.keys))
        for (id, isNow) in found { note(id, was: members[id] ?? false, isNow: isNow) }
    }

    /// Judges all rows that the person may see.
    ///
    /// - Parameter keys: Values, by column. Each of these rows has one of them; nil if nobody knows them.
    mutating func judgeAll(among keys: [Int: Set<Value>]?, by evaluator: RuleEvaluator) throws {
        var members =
            view.revision == nil
            ? [:] : try storage.views.members(of: view.number, type: type, among: nil)
        let matches: [(column: Int, values: [Value])?] =
            keys.map { $0.map { ($0.key, Array($0.value)) } } ?? [nil]
        for match in matches {
            let found = try visit(where: match) { [judged] found, id, row in
                guard judged[id] == nil, found[id] == nil else { return }
                found[id] = try evaluator.maySelect(row, of: type)
            }
            count += found.count
            for (id, isNow) in found {
                note(id, was: members.removeValue(forKey: id) ?? false, isNow: isNow)
            }
            if matches.count > 1 { judged.merge(found) { old, _ in old } }
        }
        // The rest is gone, or out of sight.
        for (id, was) in members { note(id, was: was, isNow: false) }
    }

    private func visit(
        where match: (column: Int, values: [Value])?,
        _ body: (inout [RecordID: Bool], RecordID, RuleRow) throws -> Void
    ) throws -> [RecordID: Bool] {
        var found: [RecordID: Bool] = [:]
        var failure: (any Error)?
        try storage.views.visitRows(of: type, where: match) { row in
            do {
                try body(&found, RecordAddress(type, row).id, row)
                return true
            } catch {
                failure = error
                return false
            }
        }
        if let failure { throw failure }
        return found
    }
}
