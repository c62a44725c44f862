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
    /// The row after which rows continue within a revision, if `lineage` does not name it.
    private var cursor: RowCursor?

    /// The row after which rows continue within a revision; nil if they continue after a whole
    /// revision.
    var rowCursor: RowCursor? { lineage == nil ? cursor : UnfinishedLineage.cursor(in: lineage) }

    /// Makes a request for the deltas after a cursor.
    package init(principal: Principal, since: Revision, byteLimit: Int = Limits.answerBytes) {
        self.principal = principal
        self.since = since
        self.byteLimit = byteLimit
    }

    /// Returns whether the listener fetches a batch of `count` bytes with an exchange.
    func fetches(_ count: Int) -> Bool { takesEntriesOnly && count > mostEntryBytes }

    /// Moves the request behind a batch. After a part of a difference, it asks for rows again. It
    /// drops the hash, which belonged to the former revision.
    package mutating func advance(past batch: DeltaBatchBytes) {
        if batch.isEmpty {
            wantsRows = wantsRows || UnfinishedLineage.isNamed(lineage)
        } else {
            wantsRows = batch.isDifference && batch.more
        }
        cursor = batch.cursor
        lineage = nil
        since = batch.position
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
    package func deltas(_ question: DeltaRequest) -> DeltaOutcome {
        deltas(question, log: nil)
    }

    /// Returns the batch after a cursor if it was the last one made for any listener; nil if
    /// `deltas` has to make it.
    ///
    /// It is for a listener that `deltas` has answered before, and that has named only a cursor
    /// since.
    ///
    /// - Complexity: O(1).
    package func madeDeltas(_ question: DeltaRequest) -> DeltaBatchBytes? {
        let key = DeltaCache.Key(
            since: question.since, head: cache.head, byteLimit: question.byteLimit)
        guard question.lineage == nil, !question.wantsRows,
            let made = deltaCache.batch(for: key), !question.fetches(made.json.count),
            filter.showsEverything(to: question.principal)
        else { return nil }
        guard let clientID = question.clientID, let known = knownDevice(clientID) else {
            return made
        }
        let isOwn = made.devices.contains(known.number)
        return isOwn || known.principal != question.principal.identity ? nil : made
    }

    func deltas(_ question: DeltaRequest, log: (any LogSource)?) -> DeltaOutcome {
        let head = cache.head
        var request = SyncRequest(maxRevision: question.since)
        request.clientID = question.clientID
        request.dataSet = question.dataSet
        request.lineage = question.lineage
        let admitted = AdmittedRequest(
            principal: question.principal, request: request, source: [])
        if let problem = RequestCheck.problem(with: admitted, identity: identity, head: head) {
            return mayBeOld(problem, log) ? .needsLog : .problem(problem)
        }
        var device: Int64 = 0
        if let clientID = question.clientID, let known = knownDevice(clientID) {
            guard known.principal == question.principal.identity else {
                return .problem(RequestCheck.clientBound)
            }
            device = known.number
        }
        do throws(AnswerBuilder.Failure) {
            let builder = builder(log: log)
            if let problem = try builder.lineageProblem(request, head: head) {
                return mayBeOld(problem, log) ? .needsLog : .problem(problem)
            }
            return .batch(try batch(question, device: device, head: head, builder))
        } catch {
            switch error {
            case .notInMemory, .compacted: return .needsLog
            case .fault(let fault): return .problem(RequestCheck.problem(for: fault))
            }
        }
    }

    private func batch(
        _ question: DeltaRequest, device: Int64, head: LogHead, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatchBytes {
        let goesOn = UnfinishedLineage.isNamed(question.lineage)
        if question.wantsRows || goesOn || question.since < cache.floor {
            return try withoutEntries(question, head: head, builder)
        }
        do throws(AnswerBuilder.Failure) {
            return try entries(question, device: device, head: head, builder)
        } catch {
            // The floor rose while the stored log was being read.
            guard case .compacted = error else { throw error }
            return try withoutEntries(question, head: head, builder)
        }
    }

    private func withoutEntries(
        _ question: DeltaRequest, head: LogHead, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatchBytes {
        guard question.takesEntriesOnly else { return try difference(question, builder) }
        return behind(question, head)
    }

    /// Returns a batch without deltas that tells the listener to fetch everything up to the present
    /// head with `POST /sync`.
    func behind(_ question: DeltaRequest, _ head: LogHead) -> DeltaBatchBytes {
        var batch = DeltaBatch(
            from: question.since, deltas: [], nextVersion: question.since, dataSet: identity)
        batch.isBehind = true
        // The exchange may reach another server, which does not have all entries yet.
        batch.goesOn = head.revision
        return DeltaBatchBytes(
            json: SyncCoder.encode(batch), nextVersion: question.since, position: head.revision,
            isEmpty: false, more: false, isDifference: false, isBehind: true, devices: [])
    }

    private func entries(
        _ question: DeltaRequest, device: Int64, head: LogHead, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatchBytes {
        let isShared = filter.showsEverything(to: question.principal)
        let key = DeltaCache.Key(
            since: question.since, head: head, byteLimit: question.byteLimit)
        if isShared, let made = deltaCache.batch(for: key), !made.devices.contains(device) {
            return question.fetches(made.json.count) ? behind(question, head) : made
        }
        var reached = question.since
        var body: [UInt8] = []
        var devices: Set<Int64> = []
        reading: while reached < head.revision {
            for entry in try builder.entries(from: reached + 1, through: head.revision) {
                if !body.isEmpty, body.count + entry.body.count > question.byteLimit {
                    break reading
                }
                let isOwn = device != 0 && entry.device == device
                let piece = try piece(entry, isOwn: isOwn, question, builder)
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
                if question.fetches(body.count) { return behind(question, head) }
            }
        }
        let frame = try frame(from: question.since, reached, head, builder)
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
        _ entry: LogEntry, isOwn: Bool, _ question: DeltaRequest, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> [UInt8] {
        let isShared = !isOwn && filter.showsEverything(to: question.principal)
        if isShared, let held = deltaCache.piece(of: entry) { return held }
        let piece: [UInt8]
        do throws(WireFault) {
            let bytes = isOwn ? try AuthorFormat.bytes(of: entry) : entry.body
            let set = try SyncCoder.decodeChangeSet(
                filter.entry(bytes, for: question.principal))
            piece = try SyncCoder.encodeDeltas(
                of: set, revision: entry.revision, seconds: entry.time / 1_000)
        } catch {
            throw .fault(StorageFault(.failed, "an entry of the log cannot be read: \(error)"))
        }
        if isShared { deltaCache.keep(piece, of: entry) }
        return piece
    }
}
