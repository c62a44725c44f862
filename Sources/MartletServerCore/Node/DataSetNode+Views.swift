import MartletModel
import MartletProtocol

extension DataSetNode {
    /// The view that the sender of a request is to be given.
    struct SoughtView {
        let outline: ViewKeeper.Outline
        /// The views whose records its device may have.
        let held: [Int64]
        /// False if the device has to begin again, because nobody knows whether it was given these.
        let isGranted: Bool
    }

    /// Returns the views of the requests' senders within the open transaction, by request, before any set
    /// is decided. No set changes them: they depend on the policies, the people and the day.
    func soughtViews(
        of requests: [AdmittedRequest], in works: [RequestWork?], now: Int64
    ) throws(StorageFault) -> [Int: SoughtView] {
        let lineages = requests.map(\.lineage)
        guard policies != nil || lineages.contains(where: { $0?.views.isEmpty == false }) else {
            return [:]
        }
        let keeper = ViewKeeper(storage, policies, viewIndex, now: now)
        var sought: [Int: SoughtView] = [:]
        for (index, request) in requests.enumerated() {
            guard let work = works[index], work.problem == nil else { continue }
            let outline = try keeper.outline(of: request.principal)
            let held = ViewBook.held(
                since: request.request.maxRevision, lineages[index], of: outline.number)
            sought[index] = SoughtView(
                outline: outline, held: held, isGranted: try mayHold(held, outline, request))
        }
        return sought
    }

    /// Computes the members of the requests' views, once the sets of the batch are decided.
    ///
    /// - Returns: The entries that were added so that devices can move from one view to another.
    func addViews(
        _ sought: [Int: SoughtView], to works: inout [RequestWork?], of requests: [AdmittedRequest],
        now: Int64
    ) throws(StorageFault) -> [LogEntry] {
        guard !sought.isEmpty else {
            let isForAll = policies == nil
            try noteDevices(
                of: requests, &works, sought,
                works.map { isForAll && $0?.problem == nil ? View.everything : nil }, now: now)
            return []
        }
        var keeper = ViewKeeper(storage, policies, viewIndex, now: now)
        var entries: [LogEntry] = []
        var numbers: [Int64?] = requests.map { _ in nil }
        for (index, request) in requests.enumerated() {
            guard let view = sought[index] else { continue }
            // A device that has to begin again counts, too: it has records of another view.
            guard view.isGranted else {
                numbers[index] = view.outline.number
                continue
            }
            guard works[index]?.problem == nil else { continue }
            numbers[index] = view.outline.number
            // The records that move arrive in the revision after the device's.
            let moves = !view.held.isEmpty && view.held != [view.outline.number]
            if moves, request.request.maxRevision == storage.head.revision {
                entries.append(try storage.views.appendNothing(now: now))
            }
        }
        for index in requests.indices where works[index]?.problem == nil {
            guard let found = sought[index] else { continue }
            let view = try keeper.view(found.outline)
            works[index]?.views = try change(to: view, found.held, requests[index].principal)
            works[index]?.isViewTracked = viewIndex.note(requests[index].principal, has: view)
        }
        try noteDevices(of: requests, &works, sought, numbers, now: now)
        return entries
    }

    /// Notes that a person is given a view, and returns the change of views of its device.
    func change(
        to view: View, _ held: [Int64], _ principal: Principal
    ) throws(StorageFault) -> ViewChange {
        // A person who sees everything is sent everything, so there is nothing to note.
        guard view.number != View.everything else {
            return ViewChange(held: held, view: view, given: [:])
        }
        let known = try storage.views.given(to: principal.identity)
        if known[view.number]?.last != view.revision {
            try storage.views.give(view.number, to: principal.identity, at: view.revision)
        }
        var (given, last): ([Int64: Revision], [Int64: Revision]) = ([:], [:])
        for (number, known) in known where number != View.everything {
            if number < 0 { given[-number] = known.first } else { last[number] = known.last }
        }
        for part in view.parts where part > View.whole && given[part] == nil {
            try storage.views.give(-part, to: principal.identity, at: view.revision)
            given[part] = view.revision
        }
        return ViewChange(held: held, view: view, given: given, last: last)
    }

    /// The most views whose records a device may have: each was left before its difference ended.
    private static let mostHeld = 8

    /// Returns whether a device may have the records of views. A device that lies would learn the ids
    /// of records that its user never saw.
    private func mayHold(
        _ held: [Int64], _ outline: ViewKeeper.Outline, _ request: AdmittedRequest
    ) throws(StorageFault) -> Bool {
        guard held.count <= Self.mostHeld else { return false }
        let others = Set(held).subtracting([outline.number])
        let since = request.request.maxRevision
        let isUnnamed = request.lineage == nil && since > 0
        guard isUnnamed || !others.isEmpty else { return true }
        let given = try storage.views.given(to: request.principal.identity)
        guard !isUnnamed else { return try knowsMoves(since: since, to: outline, given) }
        for other in others {
            let parts: [Int64]
            if other == View.everything {
                parts = storage.schema.types.map { _ in View.whole }
            } else {
                guard let view = given[other], since <= view.last,
                    let stored = try storage.views.parts(of: other)
                else { return false }
                parts = stored
            }
            // Nobody knows which of all records were there at the device's revision.
            let shrinks = zip(parts, outline.parts).contains {
                $0 == View.whole && $1 != View.whole
            }
            if shrinks { return false }
        }
        return true
    }

    /// Returns whether the server can tell a program that names no lineage which records entered and left its
    /// user's view. It cannot if the view that the user had was removed, and he was not given the present one yet.
    ///
    /// - Parameter given: The views that the user was given.
    private func knowsMoves(
        since: Revision, to outline: ViewKeeper.Outline, _ given: [Int64: GivenView]
    ) throws(StorageFault) -> Bool {
        let isGiven = outline.parts.allSatisfy { $0 <= View.whole || given[-$0] != nil }
        guard !isGiven else { return true }
        for (number, view) in given where number > View.everything && view.last >= since {
            if try storage.views.parts(of: number) == nil { return false }
        }
        return true
    }

    /// Returns an own set as its sender may know it: without values, because these come as rows, and
    /// without records that its view never showed and that did not get their ids by the set.
    ///
    /// - Parameter form: The set in its author's format.
    func reduced(_ form: ChangeSet, for view: View) throws(StorageFault) -> ChangeSet {
        var reduced = form
        for index in reduced.types.indices {
            let changes = reduced.types[index]
            let changed = changes.create + changes.update + changes.delete
            var known = Set(changes.entries.lazy.filter { $0.oldID != nil }.map(\.id))
            // A type that was dropped since has no part.
            if let type = storage.schema.index(of: changes.name) {
                switch view.parts[type] {
                case View.whole: known.formUnion(changed)
                case View.nothing: break
                case let part:
                    known.formUnion(
                        try storage.views.members(of: part, type: type, among: changed).keys)
                }
            }
            reduced.types[index].create.removeAll { !known.contains($0) }
            reduced.types[index].update.removeAll { !known.contains($0) }
            reduced.types[index].delete.removeAll { !known.contains($0) }
            reduced.types[index].entries.removeAll { !known.contains($0.id) }
            for entry in reduced.types[index].entries.indices {
                reduced.types[index].entries[entry].attributes = Attributes()
            }
        }
        reduced.types.removeAll { $0.create.isEmpty && $0.update.isEmpty && $0.delete.isEmpty }
        return reduced
    }
}
