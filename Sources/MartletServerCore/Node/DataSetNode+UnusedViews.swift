import MartletModel

extension DataSetNode {
    /// The most members of type views that one step of compaction removes.
    private static let membersPerStep = 4_096

    /// Removes views that nobody was given at the log's floor or later, and type views that no other view
    /// has, within the open transaction. A device that names such a view fetches everything again.
    ///
    /// A view that memory knows stays, because devices that no change concerns are not noted again.
    ///
    /// - Returns: True if something is left to remove.
    func removeUnusedViews() throws(StorageFault) -> Bool {
        let kept = try storage.views.kept()
        guard !kept.typeViews.isEmpty || !kept.views.isEmpty else { return false }
        let known = feed.views.numbers
        var unused: [Int64] = []
        var used: Set<Int64> = []
        for view in kept.views {
            if view.last < storage.floor, !known.contains(view.number) {
                unused.append(view.number)
            } else {
                used.formUnion(ViewScan.typeViews(view.parts))
            }
        }
        if !unused.isEmpty { try storage.views.removeViews(unused) }
        var room = Self.membersPerStep
        for number in kept.typeViews where !used.contains(number) {
            guard room > 0 else { return true }
            viewIndex.forget(number)
            let removed = try storage.views.removeTypeView(number, records: room)
            // Removing the type view itself takes time, too.
            room -= removed + 16
        }
        return room <= 0
    }
}
