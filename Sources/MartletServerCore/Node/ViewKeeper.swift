import MartletModel
import MartletRules

/// Brings the views of people up to the records that a transaction has led to.
///
/// A type view is computed from the records that changed since it was last, or from all of its type if
/// records changed that its policies read.
struct ViewKeeper {
    private let storage: any ServerStorage
    private let policies: RulesProgram?
    private let now: Int64
    /// The numbers of the type views that are up to date.
    private var current: Set<Int64> = []
    /// The types with changed records, by the revision after which they changed.
    private var changed: [Revision: Set<Int>] = [:]

    /// - Parameter now: Milliseconds since 1970.
    init(_ storage: any ServerStorage, _ policies: RulesProgram?, now: Int64) {
        self.storage = storage
        self.policies = policies
        self.now = now
    }

    /// A person's view whose type views may be behind.
    struct Outline {
        let number: Int64
        let parts: [Int64]
        /// The type views among the parts, with their types.
        fileprivate let behind: [(type: Int, view: TypeView)]
        fileprivate let rights: RowRights?
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
            number: isWhole ? View.everything : try storage.views.viewNumber(of: parts),
            parts: parts, behind: zip(keys, views).map { ($0.type, $1) }, rights: rights)
    }

    /// Returns the view at the end of the log, after computing its members.
    mutating func view(_ outline: Outline) throws(StorageFault) -> View {
        let head = storage.head.revision
        for (type, view) in outline.behind where view.revision != head {
            guard let rights = outline.rights, current.insert(view.number).inserted
            else { continue }
            try advance(view, of: type, to: head, rights)
        }
        return View(number: outline.number, parts: outline.parts, revision: head)
    }

    private mutating func advance(
        _ view: TypeView, of type: Int, to head: Revision, _ rights: RowRights
    ) throws(StorageFault) {
        var moves = Moves()
        // No device had a view that was never computed, so nothing moved.
        let moved = view.revision == nil ? 0 : head
        if let revision = view.revision {
            let changed = try changedTypes(after: revision)
            if !changed.isDisjoint(with: rights.program.typesRead(by: type)) {
                try judgeAll(of: type, view, rights, &moves)
            } else if changed.contains(type) {
                try judgeChanged(of: type, since: revision, view, rights, &moves)
            }
        } else {
            try judgeAll(of: type, view, rights, &moves)
        }
        try storage.views.advance(
            view.number, type: type, to: head, shown: moves.shown, hidden: moves.hidden,
            moved: moved)
    }

    private mutating func changedTypes(after revision: Revision) throws(StorageFault) -> Set<Int> {
        if let known = changed[revision] { return known }
        let found = try storage.views.changedTypes(after: revision)
        changed[revision] = found
        return found
    }

    /// The records that a type view shows now and did not before, and the other way round.
    private struct Moves {
        var shown: [RecordID] = []
        var hidden: [RecordID] = []

        mutating func note(_ id: RecordID, was: Bool, isNow: Bool) {
            guard was != isNow else { return }
            if isNow { shown.append(id) } else { hidden.append(id) }
        }
    }

    private func judgeAll(
        of type: Int, _ view: TypeView, _ rights: RowRights, _ moves: inout Moves
    ) throws(StorageFault) {
        var members = try storage.views.members(of: view.number, type: type, among: nil)
        try RowLookups.working(storage.rows(of:where:isAmong:)) { rows in
            let evaluator = rights.evaluator(over: rows)
            var failure: (any Error)?
            try storage.views.visitRows(of: type) { row in
                do {
                    let id = RecordAddress(type, row).id
                    moves.note(
                        id, was: members.removeValue(forKey: id) ?? false,
                        isNow: try evaluator.maySelect(row, of: type))
                    return true
                } catch {
                    failure = error
                    return false
                }
            }
            if let failure { throw failure }
        }
        // The rest is gone.
        for (id, was) in members { moves.note(id, was: was, isNow: false) }
    }

    private func judgeChanged(
        of type: Int, since revision: Revision, _ view: TypeView, _ rights: RowRights,
        _ moves: inout Moves
    ) throws(StorageFault) {
        let ids = try storage.views.changedRecords(of: type, after: revision)
        let members = try storage.views.members(of: view.number, type: type, among: ids)
        var seen: Set<RecordID> = []
        try RowLookups.working(storage.rows(of:where:isAmong:)) { rows in
            let evaluator = rights.evaluator(over: rows)
            let wanted = Set(ids)
            for row in try storage.rows(of: type, where: 0, isAmong: ids.map(\.value)) {
                let id = RecordAddress(type, row).id
                guard wanted.contains(id), try evaluator.maySelect(row, of: type) else { continue }
                seen.insert(id)
            }
        }
        for id in ids { moves.note(id, was: members[id] ?? false, isNow: seen.contains(id)) }
    }
}
