package import MartletModel
package import MartletProtocol

/// Snapshots of views, and answers that are sent in pieces. A snapshot has the records that a view showed at
/// a revision, and everyone who has the view may begin with it as long as no record has left the view since.
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
        /// The reason why the person's device may not have the snapshot's file; nil if it may.
        package var problem: Problem?
    }

    /// Returns the view that a person has now, and the snapshot that he may begin with. He then counts as
    /// given the view.
    ///
    /// - Parameters:
    ///   - clientID: The device that is to get the snapshot's file; nil if none is to get it yet.
    ///   - made: The snapshots that the server has, by the names of their views.
    ///   - now: Milliseconds since 1970.
    /// - Returns: Nil if the person sees everything.
    package func snapshotClaim(
        of principal: Principal, for clientID: String? = nil, among made: [String: ViewSnapshot],
        now: Int64
    ) throws(StorageFault) -> SnapshotClaim? {
        var noted: NotedDevice?
        let claim = try keepingViews(now: now) { (keeper) throws(StorageFault) -> SnapshotClaim? in
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
            if granted != nil, let clientID {
                noted = try note(outline.number, givenTo: clientID, of: principal, now: now)
            }
            return SnapshotClaim(
                view: outline.number, name: name, granted: granted, problem: noted?.problem)
        }
        if let noted { remember(noted) }
        return claim
    }

    /// Returns the view of an earlier answer, with the newest revision at which its rest may be sent to a person;
    /// nil if it may not be sent. It may if the person has the view for which it was made, and no record has left
    /// the view since.
    ///
    /// - Parameter now: Milliseconds since 1970.
    package func stillShows(
        _ answered: AnsweredView, to principal: Principal, now: Int64
    ) throws(StorageFault) -> AnsweredView? {
        try keepingViews(now: now) { (keeper) throws(StorageFault) -> AnsweredView? in
            let outline = try keeper.outline(of: principal)
            guard outline.number == answered.number else { return nil }
            let view = try keeper.view(outline)
            let parts = view.parts.filter { $0 > View.whole }
            guard try !storage.views.haveLost(parts, after: answered.revision) else { return nil }
            return AnsweredView(number: view.number, revision: view.revision)
        }
    }

    /// Notes that a device is given everything, before it gets a file of a snapshot of everything.
    ///
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: The reason why the device may not have the file; nil if it may.
    package func noteEverything(
        givenTo clientID: String, of principal: Principal, now: Int64
    ) throws(StorageFault) -> Problem? {
        let noted = try keepingViews(now: now) { (_: inout ViewKeeper) throws(StorageFault) in
            try note(View.everything, givenTo: clientID, of: principal, now: now)
        }
        remember(noted)
        return noted.problem
    }

    /// Returns the problem of a request that names a device in a wrong way, such as another user's; nil if the
    /// device is the person's own, or if nobody has it.
    ///
    /// - Parameter now: Milliseconds since 1970.
    package func problem(
        naming clientID: String, by principal: Principal, now: Int64
    ) throws(StorageFault) -> Problem? {
        if let problem = nameProblem(clientID, principal) { return problem }
        let device = try keepingViews(now: now) { (_: inout ViewKeeper) throws(StorageFault) in
            try storage.devices(named: [clientID])[clientID]
        }
        guard let device else { return nil }
        feed.learn([clientID: device])
        return device.principal == principal.identity ? nil : RequestCheck.clientBound
    }

    /// Returns the problem with a name that cannot be a device's; nil if it can.
    private func nameProblem(_ clientID: String, _ principal: Principal) -> Problem? {
        var request = SyncRequest(maxRevision: 0)
        request.clientID = clientID
        return RequestCheck.problem(
            with: AdmittedRequest(principal: principal, request: request, source: []),
            identity: identity, head: storage.head)
    }

    /// A device for which a view was noted, or the reason why it was not.
    private struct NotedDevice {
        let clientID: String
        var note = DeviceNote()
        var device: KnownDevice?
        var problem: Problem?
    }

    /// Notes within the open transaction that a device is given a view, as an exchange does. A device that
    /// is not known is registered, unless its user sees everything.
    private func note(
        _ view: Int64, givenTo clientID: String, of principal: Principal, now: Int64
    ) throws(StorageFault) -> NotedDevice {
        var noted = NotedDevice(clientID: clientID)
        noted.problem = nameProblem(clientID, principal)
        guard noted.problem == nil else { return noted }
        var device = try storage.devices(named: [clientID])[clientID]
        if device == nil, view != View.everything {
            device = try storage.register(
                clientID: clientID, principal: principal, most: devicesPerUser, now: now)
            if device == nil { noted.problem = RequestCheck.tooManyDevices(devicesPerUser) }
        }
        guard let device else { return noted }
        guard device.principal == principal.identity else {
            noted.problem = RequestCheck.clientBound
            return noted
        }
        noted.note =
            try storage.views.notes(ofDevices: [device.number])[device.number] ?? DeviceNote()
        if view != noted.note.view {
            try storage.views.give(view, toDevice: device.number, at: storage.head.revision)
            noted.note = DeviceNote(view: view)
        }
        noted.device = device
        return noted
    }

    /// Keeps in memory what a transaction has noted.
    private func remember(_ noted: NotedDevice) {
        guard let device = noted.device else { return }
        feed.learn([noted.clientID: device])
        feed.keep(noted.note, ofDevice: device.number)
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
