import MartletModel
import MartletProtocol

extension DataSetNode {
    /// Computes the views of the requests' senders within the open transaction, once the sets of the
    /// batch are decided.
    ///
    /// - Parameter begun: The revision before the sets of the batch.
    /// - Returns: The entries that were added so that devices can move from one view to another.
    func addViews(
        to works: inout [RequestWork?], of requests: [AdmittedRequest], begun: Revision, now: Int64
    ) throws(StorageFault) -> [LogEntry] {
        if policies == nil, !isOpen {
            try storage.views.endPolicies()
            isOpen = true
        }
        let lineages = requests.map { $0.request.lineage.map { DeviceLineage($0) } }
        guard policies != nil || lineages.contains(where: { $0?.views.isEmpty == false }) else {
            return []
        }
        if policies != nil, beginning == nil {
            beginning = try storage.views.beginning(at: begun)
        }
        var keeper = ViewKeeper(storage, policies, now: now)
        var outlines: [Int: (outline: ViewKeeper.Outline, held: [Int64])] = [:]
        var entries: [LogEntry] = []
        for (index, request) in requests.enumerated() {
            guard let work = works[index], work.problem == nil else { continue }
            let outline = try keeper.outline(of: request.principal)
            let since = request.request.maxRevision
            let held = ViewBook.held(
                since: since, named: lineages[index]?.views, of: outline.number)
            guard try mayHold(held, outline.number, request) else {
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
        for (index, (outline, held)) in outlines {
            let principal = requests[index].principal
            let view = try keeper.view(outline)
            if !feed.views.wasGiven(view.number, to: principal) {
                try storage.views.give(view.number, to: principal.identity)
            }
            works[index]?.views = ViewChange(held: held, view: view)
        }
        return entries
    }

    /// Returns whether a device may have the records of views. A device that lies would learn the ids
    /// of records that its user never saw.
    private func mayHold(
        _ held: [Int64], _ view: Int64, _ request: AdmittedRequest
    ) throws(StorageFault) -> Bool {
        let others = held.filter { $0 != view }
        guard !others.isEmpty else { return true }
        let given = try storage.views.given(to: request.principal.identity)
        return others.allSatisfy { other in
            // Before there were policies, everyone was given everything.
            given.contains(other)
                || other == View.everything
                    && request.request.maxRevision <= beginning ?? .max
        }
    }

    /// Returns an own set as its sender may know it: without values, because these come as rows, and
    /// without records that its view never showed and that the set did not create.
    func reduced(
        _ set: ChangeSet, for view: View
    ) throws(StorageFault) -> ChangeSet {
        var reduced = set
        for index in reduced.types.indices {
            let changes = reduced.types[index]
            guard let type = storage.schema.index(of: changes.name) else { continue }
            let created = Set(changes.create)
            var known = created
            switch view.parts[type] {
            case View.whole: known.formUnion(changes.update + changes.delete)
            case View.nothing: break
            case let part:
                known.formUnion(
                    try storage.views.members(
                        of: part, type: type, among: changes.update + changes.delete
                    ).keys)
            }
            reduced.types[index].update.removeAll { !known.contains($0) }
            reduced.types[index].delete.removeAll { !known.contains($0) }
            reduced.types[index].entries.removeAll { !known.contains($0.id) }
            for entry in reduced.types[index].entries.indices {
                reduced.types[index].entries[entry].attributes = Attributes()
            }
        }
        return reduced
    }
}
