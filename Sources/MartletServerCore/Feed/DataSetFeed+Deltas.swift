package import MartletModel
package import MartletProtocol

/// The request of a listener.
package struct DeltaRequest: Sendable {
    package var principal: Principal
    /// The cursor. The listener has everything up to it.
    package var since: Revision
    /// The client id of the device that listens, so that it recognises its own sets; nil for other
    /// listeners.
    package var clientID: String?
    /// The data set, and the log's hash at `since`, if the listener knows them.
    package var dataSet: String?
    package var lineage: String?
    /// The bytes of deltas after which a batch ends, between two change sets.
    package var byteLimit: Int
    /// True if the listener wants the present rows in place of entries.
    package var wantsRows = false
    /// True if the server tells a listener that is behind the log so, in place of sending rows. The
    /// listener then fetches the rows with an exchange.
    package var takesEntriesOnly = false
    /// The bytes of a batch of entries above which such a listener is also told to fetch them.
    /// Compressed, they take a fraction of the time on a slow line.
    package var mostEntryBytes = Int.max
    /// True if the listener's user does not see everything, or did not since the listening began.
    private(set) var isPart = false
    /// True if the listener's user may see something else than at the listener's last exchange.
    package var mustExchange = false
    /// The revision up to which there is nothing for the listener.
    package private(set) var known: Revision = 0
    /// The row after which rows continue within a revision, if `lineage` does not name it.
    private var cursor: RowCursor?

    /// The row after which rows continue within a revision; nil if they continue after a whole
    /// revision.
    var rowCursor: RowCursor? { lineage.map { DeviceLineage($0).cursor } ?? cursor }

    /// True if the listener is within a difference.
    var goesOn: Bool { lineage.map { DeviceLineage($0).isUnfinished } ?? false }

    /// Makes a request for the deltas after a cursor.
    package init(principal: Principal, since: Revision, byteLimit: Int = Limits.answerBytes) {
        self.principal = principal
        self.since = since
        self.byteLimit = byteLimit
    }

    /// Returns whether the listener fetches a batch of `count` bytes with an exchange.
    func fetches(_ count: Int) -> Bool { takesEntriesOnly && count > mostEntryBytes }

    /// The person whose concerns alone wake the listener; nil if every change does.
    package private(set) var concern: Principal?

    /// Notes that a batch had no news.
    package mutating func note(empty batch: DeltaBatchBytes) {
        if batch.isPart { isPart = true }
        known = max(batch.position, batch.known)
        concern = batch.isTracked ? principal : nil
    }

    /// Moves the request behind a batch. After a part of a difference, it asks for rows again. It
    /// drops the hash, which belonged to the former revision.
    package mutating func advance(past batch: DeltaBatchBytes) {
        if batch.isEmpty {
            wantsRows = wantsRows || goesOn
        } else {
            wantsRows = batch.isDifference && batch.more
        }
        cursor = batch.cursor
        isPart = isPart || batch.isPart
        mustExchange = false
        lineage = nil
        since = batch.position
        (known, concern) = (since, nil)
    }
}

extension DataSetFeed {
    /// The outcome of a listener's request.
    package enum DeltaOutcome: Sendable {
        case batch(DeltaBatchBytes)
        case problem(Problem)
        /// The batch needs entries that are not in memory. The caller asks a `LogReader`.
        case needsLog
    }

    /// Returns the deltas after a cursor if memory has them. The batch is empty if there are none.
    ///
    /// - Complexity: O(*n*) in the bytes of the batch; O(1) if it was just made for another
    ///   listener.
    package func deltas(_ request: DeltaRequest) -> DeltaOutcome {
        deltas(request, log: nil)
    }

    /// Returns the batch after a cursor if it was the last one made for any listener; nil if
    /// `deltas` has to make it.
    ///
    /// It is for a listener that `deltas` has answered before, and that has named only a cursor
    /// since.
    ///
    /// - Complexity: O(1).
    package func madeDeltas(_ request: DeltaRequest) -> DeltaBatchBytes? {
        let key = DeltaCache.Key(
            since: request.since, head: cache.head, byteLimit: request.byteLimit)
        guard request.lineage == nil, !request.wantsRows, !request.isPart,
            let made = deltaCache.batch(for: key), !request.fetches(made.json.count),
            views.showsEverything(to: request.principal)
        else { return nil }
        guard let clientID = request.clientID else { return made }
        guard let known = knownDevice(clientID) else {
            let head = key.head.revision
            return made.devices.contains { mayBeOwn($0, of: clientID, at: head) } ? nil : made
        }
        let isOwn = made.devices.contains(known.number)
        return isOwn || known.principal != request.principal.identity ? nil : made
    }

    func deltas(_ request: DeltaRequest, log: (any LogSource)?) -> DeltaOutcome {
        let head = cache.head
        var sync = SyncRequest(maxRevision: request.since)
        sync.clientID = request.clientID
        sync.dataSet = request.dataSet
        sync.lineage = request.lineage
        let admitted = AdmittedRequest(
            principal: request.principal, request: sync, source: [])
        if let problem = RequestCheck.problem(with: admitted, identity: identity, head: head) {
            return mayBeOld(problem, log) ? .needsLog : .problem(problem)
        }
        var device: Int64 = 0
        if let clientID = request.clientID, let known = knownDevice(clientID) {
            guard known.principal == request.principal.identity else {
                return .problem(RequestCheck.clientBound)
            }
            device = known.number
        }
        do throws(AnswerBuilder.Failure) {
            let builder = builder(log: log)
            if let problem = try builder.lineageProblem(sync, head: head) {
                return mayBeOld(problem, log) ? .needsLog : .problem(problem)
            }
            return .batch(try batch(request, device: device, head: head, builder))
        } catch {
            switch error {
            case .notInMemory, .compacted: return .needsLog
            case .fault(let fault): return .problem(RequestCheck.problem(for: fault))
            }
        }
    }

    private func batch(
        _ request: DeltaRequest, device: Int64, head: LogHead, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatchBytes {
        if isLimited(request) {
            return try batch(forPart: request, head: head, builder)
        }
        if request.wantsRows || request.goesOn || request.since < cache.floor {
            return try withoutEntries(request, head: head, builder)
        }
        do throws(AnswerBuilder.Failure) {
            return try entries(request, device: device, head: head, builder)
        } catch {
            // The floor rose while the stored log was being read.
            guard case .compacted = error else { throw error }
            return try withoutEntries(request, head: head, builder)
        }
    }

    /// Returns the batch for a listener whose user does not see everything: the writer has to compute
    /// the view, and an exchange makes it do so.
    private func batch(
        forPart request: DeltaRequest, head: LogHead, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatchBytes {
        var made: DeltaBatchBytes
        let isTracked = views.isTracked(request.principal)
        if request.since < head.revision,
            views.mayConcern(request.principal, since: request.since, head: head.revision)
        {
            made = behind(request, head)
        } else if request.mustExchange || request.goesOn || hasOtherView(request, head) {
            // It has the newest revision, but perhaps of another view, or not all of it.
            made = behind(request, head, goesOn: nil)
        } else {
            // The lineage of a part names its view, which only the listener knows.
            let frame = DeltaBatch(
                from: request.since, deltas: [], nextVersion: request.since, dataSet: identity,
                lineage: request.lineage)
            made = finished([], frame, [])
            made.known = head.revision
            made.isTracked = isTracked
        }
        made.isPart = true
        return made
    }

    /// Returns whether a listener that names a lineage may have another view than its user.
    private func hasOtherView(_ request: DeltaRequest, _ head: LogHead) -> Bool {
        guard let lineage = request.lineage else { return false }
        let sight = views.sight(
            of: request.principal, since: request.since, DeviceLineage(lineage),
            head: head.revision)
        if case .limited = sight { return false }
        return true
    }

    /// Returns whether the listener may not be sent the log's entries: its user does not see
    /// everything, or did not.
    private func isLimited(_ request: DeltaRequest) -> Bool {
        let views = request.lineage.map { DeviceLineage($0).views } ?? []
        return request.isPart || !views.isEmpty
            || !self.views.showsEverything(to: request.principal)
    }

    private func withoutEntries(
        _ request: DeltaRequest, head: LogHead, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatchBytes {
        guard request.takesEntriesOnly else { return try difference(request, builder) }
        return behind(request, head)
    }

    /// Returns a batch that tells a listener which has not reached the head to fetch everything.
    func behind(_ request: DeltaRequest, _ head: LogHead) -> DeltaBatchBytes {
        behind(request, head, goesOn: head.revision)
    }

    /// Returns a batch without deltas that tells the listener to fetch everything up to the present
    /// head with `POST /sync`.
    ///
    /// - Parameter goesOn: The head, if a device that has reached it already need not fetch.
    func behind(
        _ request: DeltaRequest, _ head: LogHead, goesOn: Revision?
    ) -> DeltaBatchBytes {
        var batch = DeltaBatch(
            from: request.since, deltas: [], nextVersion: request.since, dataSet: identity)
        batch.isBehind = true
        // The exchange may reach another server, which does not have all entries yet.
        batch.goesOn = goesOn
        return DeltaBatchBytes(
            json: SyncCoder.encode(batch), nextVersion: request.since, position: head.revision,
            isEmpty: false, more: false, isDifference: false, isBehind: true, devices: [])
    }

    private func entries(
        _ request: DeltaRequest, device: Int64, head: LogHead, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatchBytes {
        let isShared = views.showsEverything(to: request.principal)
        let key = DeltaCache.Key(
            since: request.since, head: head, byteLimit: request.byteLimit)
        // An exchange finds out which device an unknown client id names.
        let unknown = device == 0 ? request.clientID : nil
        if isShared, let made = deltaCache.batch(for: key), !made.devices.contains(device) {
            let isUncertain = unknown.map { clientID in
                made.devices.contains { mayBeOwn($0, of: clientID, at: head.revision) }
            }
            return request.fetches(made.json.count) || isUncertain == true
                ? behind(request, head) : made
        }
        var reached = request.since
        var body: [UInt8] = []
        var devices: Set<Int64> = []
        reading: while reached < head.revision {
            for entry in try builder.entries(from: reached + 1, through: head.revision) {
                if !body.isEmpty, body.count + entry.body.count > request.byteLimit {
                    break reading
                }
                if let unknown, mayBeOwn(entry.device, of: unknown, at: entry.revision) {
                    return behind(request, head)
                }
                let isOwn = device != 0 && entry.device == device
                let piece = try piece(entry, isOwn: isOwn, request, builder)
                if !body.isEmpty, body.count + piece.count > Limits.batchBytes {
                    break reading
                }
                // A listener does not take so many bytes at once. Rows can be sent in parts.
                guard piece.count <= Limits.deltaBytes else {
                    throw .compacted
                }
                if entry.device != 0 { devices.insert(entry.device) }
                if !body.isEmpty, !piece.isEmpty { body.append(UInt8(ascii: ",")) }
                body += piece
                reached = entry.revision
                if request.fetches(body.count) { return behind(request, head) }
            }
        }
        let frame = try frame(from: request.since, reached, head, builder)
        let made = finished(body, frame, devices)
        if isShared, !devices.contains(device), reached == head.revision {
            deltaCache.keep(made, for: key)
        }
        return made
    }

    private func frame(
        from since: Revision, _ reached: Revision, _ head: LogHead, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatch {
        DeltaBatch(
            from: since, deltas: [], nextVersion: reached, dataSet: identity,
            lineage: try builder.hash(at: reached, head: head).text,
            more: reached < head.revision)
    }

    private func finished(
        _ body: [UInt8], _ frame: DeltaBatch, _ devices: Set<Int64>
    ) -> DeltaBatchBytes {
        var json = SyncCoder.deltaHead(frame)
        json.reserveCapacity(json.count + body.count + 40)
        json += body
        json += SyncCoder.deltaTail(nextVersion: frame.nextVersion)
        return DeltaBatchBytes(
            json: json, nextVersion: frame.nextVersion, position: frame.nextVersion,
            isEmpty: frame.nextVersion == frame.from, more: frame.more, isDifference: false,
            isBehind: false, devices: devices)
    }

    private func piece(
        _ entry: LogEntry, isOwn: Bool, _ request: DeltaRequest, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> [UInt8] {
        let isShared = !isOwn
        if isShared, let held = deltaCache.piece(of: entry) { return held }
        let piece: [UInt8]
        do throws(WireFault) {
            let bytes = isOwn ? try AuthorFormat.bytes(of: entry) : entry.body
            let set = try SyncCoder.decodeChangeSet(bytes)
            piece = try SyncCoder.encodeDeltas(
                of: set, revision: entry.revision, seconds: entry.time / 1_000)
        } catch {
            throw .fault(StorageFault(.failed, "an entry of the log cannot be read: \(error)"))
        }
        if isShared { deltaCache.keep(piece, of: entry) }
        return piece
    }
}
