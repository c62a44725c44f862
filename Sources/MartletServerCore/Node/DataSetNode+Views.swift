import MartletModel
import MartletProtocol

extension DataSetNode {
    /// Computes the views of the requests' senders within the open transaction, once the sets of the
    /// batch are decided.
    ///
    /// - Returns: The entries that were added so that devices can move from one view to another.
    func addViews(
        to works: inout [RequestWork?], of requests: [AdmittedRequest], now: Int64
    ) throws(StorageFault) -> [LogEntry] {
        let lineages = requests.map(\.lineage)
        guard policies != nil || lineages.contains(where: { $0?.views.isEmpty == false }) else {
            try noteReceipts(works, of: requests, now: now)
            return []
        }
        var keeper = ViewKeeper(storage, policies, viewIndex, now: now)
        var outlines: [Int: (outline: ViewKeeper.Outline, held: [Int64])] = [:]
        var entries: [LogEntry] = []
        for (index, request) in requests.enumerated() {
            guard let work = works[index], work.problem == nil else { continue }
            let outline = try keeper.outline(of: request.principal)
            let since = request.request.maxRevision
            let held = ViewBook.held(since: since, lineages[index], of: outline.number)
            guard try mayHold(held, outline, request) else {
                works[index]?.problem = RequestCheck.view
                continue
            }
            outlines[index] = (outline, held)
            // The records that move arrive in the revision after the device's.
            let moves = !held.isEmpty && held != [outline.number]
            if moves, since == storage.head.revision {
                entries.append(try storage.views.appendNothing(now: now))
            }
        }
        for index in requests.indices {
            guard let (outline, held) = outlines[index] else { continue }
            let view = try keeper.view(outline)
            works[index]?.views = try change(to: view, held, requests[index].principal)
            if let device = works[index]?.device { try noteView(view, of: device) }
            works[index]?.isViewTracked = viewIndex.note(requests[index].principal, has: view)
        }
        try noteReceipts(works, of: requests, now: now)
        return entries
    }

    /// Keeps what devices confirm to have removed.
    private func noteReceipts(
        _ works: [RequestWork?], of requests: [AdmittedRequest], now: Int64
    ) throws(StorageFault) {
        for (index, request) in requests.enumerated() {
            guard let receipt = request.request.purged, let work = works[index],
                work.problem == nil, work.device != 0, receipt.revision <= storage.head.revision
            else { continue }
            try storage.views.note(receipt, of: work.device, now: now)
            // Nothing was given to somebody who sees everything. His devices are told from those that
            // are limited by this.
            if receipt.view == View.everything, feed.views.showsEverything(to: request.principal) {
                try storage.views.give(
                    View.everything, to: request.principal.identity, at: storage.head.revision)
                try storage.views.give(
                    View.everything, to: Self.identity(work.device), at: storage.head.revision)
            }
        }
    }

    /// The name under which the views of a device are kept.
    private static func identity(_ device: Int64) -> String {
        DevicePurges.identity(ofDevice: device)
    }

    /// Notes the view that a device is given. The tokens of a person's devices may have different roles.
    private func noteView(_ view: View, of device: Int64) throws(StorageFault) {
        guard device != 0, view.number != View.everything else { return }
        let identity = Self.identity(device)
        guard try storage.views.given(to: identity)[view.number]?.last != view.revision else {
            return
        }
        try storage.views.give(view.number, to: identity, at: view.revision)
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
