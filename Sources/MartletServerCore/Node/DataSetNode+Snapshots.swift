package import MartletModel

/// Snapshots of views. A snapshot has the records that a view showed at a revision, and everyone who has
/// the view may begin with it as long as no record has left the view since.
extension DataSetNode {
    /// A snapshot of a view that the server has.
    package struct ViewSnapshot: Hashable, Sendable {
        package let revision: Revision
        /// The lineage with which a device continues from it.
        package let lineage: String

        package init(revision: Revision, lineage: String) {
            (self.revision, self.lineage) = (revision, lineage)
        }
    }

    /// The view of a person who asks for a snapshot.
    package struct SnapshotClaim: Hashable, Sendable {
        /// The number of the view.
        package let view: Int64
        /// A name that stands for all that the view depends on besides the records.
        package let name: String
        /// The snapshot that the person may have; nil for none.
        package let granted: ViewSnapshot?
    }

    /// Returns the view that a person has now, and the snapshot that he may begin with. He then counts as
    /// given the view.
    ///
    /// - Parameters:
    ///   - made: The snapshots that the server has, by the names of their views.
    ///   - now: Milliseconds since 1970.
    /// - Returns: Nil if the person sees everything.
    package func snapshotClaim(
        of principal: Principal, among made: [String: ViewSnapshot], now: Int64
    ) throws(StorageFault) -> SnapshotClaim? {
        try keepingViews(now: now) { (keeper) throws(StorageFault) in
            let outline = try keeper.outline(of: principal)
            guard outline.number != View.everything else { return nil }
            let name = outline.name
            var granted: ViewSnapshot?
            if let snapshot = made[name], snapshot.revision <= storage.head.revision,
                let hash = try log.hash(at: snapshot.revision),
                DeviceLineage(hash: hash.text, views: [outline.number]).text == snapshot.lineage
            {
                let view = try keeper.view(outline)
                let parts = view.parts.filter { $0 > View.whole }
                // The person may never have been allowed to see a record that has left.
                if try !storage.views.haveLost(parts, after: snapshot.revision) {
                    _ = try change(to: view, [], principal)
                    granted = snapshot
                }
            }
            return SnapshotClaim(view: outline.number, name: name, granted: granted)
        }
    }

    /// Brings the view of a person up to the log's end, and runs `body` while nothing is written, so that a
    /// reader which begins in it sees the rows and the view at one revision.
    ///
    /// - Parameters:
    ///   - name: The name that the person's view must have.
    ///   - now: Milliseconds since 1970.
    /// - Throws: `StorageFault`, `.busy` if the person has another view; the fault that `body` throws.
    package func whenViewed(
        by principal: Principal, as name: String, now: Int64,
        _ body: () throws(StorageFault) -> Void
    ) throws(StorageFault) {
        for _ in 0..<Self.intakeSteps {
            let reached = try keepingViews(now: now) { (keeper) throws(StorageFault) in
                let outline = try keeper.outline(of: principal)
                return outline.name == name ? try keeper.view(outline).revision : nil
            }
            guard let reached else {
                throw StorageFault(.busy, "the person has another view by now")
            }
            var isDone = false
            _ = try whenCaughtUp(now: now) { () throws(StorageFault) in
                guard storage.head.revision == reached else { return }
                try body()
                isDone = true
            }
            if isDone { return }
        }
        throw StorageFault.neverCaughtUp
    }

    /// Runs `body` in a transaction in which the log has all external writes.
    private func keepingViews<Result>(
        now: Int64, _ body: (inout ViewKeeper) throws(StorageFault) -> Result
    ) throws(StorageFault) -> Result {
        lastTime = now
        do throws(StorageFault) {
            if needsRecovery { try recover() }
            let external = try beginWhole(now: now)
            var keeper = ViewKeeper(storage, policies, viewIndex, now: now)
            let result = try body(&keeper)
            try commit(external)
            return result
        } catch {
            needsRecovery = true
            // The caller reports it, and no batch of the writer has failed.
            throw faultAfterRecovery(from: error)
        }
    }
}
