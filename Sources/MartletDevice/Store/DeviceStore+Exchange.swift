package import MartletModel
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// The next request, or the reason why there is none.
package enum Gathered: Sendable {
    /// The body of a request and the identifiers of the change sets in it.
    case request([UInt8], changeSets: [String])
    /// Another process exchanges for this file until this time (milliseconds since 1970).
    case leased(until: Int64)
}

extension DeviceStore {
    /// Turns external writes into sets, freezes the sets to send, and builds the request, in one
    /// transaction that is durable before the bytes leave.
    /// - Parameters:
    ///   - owner: The name of the exchanging process. One exchange runs at a time, across processes
    ///     on one file.
    ///   - isGone: Returns whether another owner died without ending its lease, which then counts
    ///     as ended.
    ///   - wantsRows: Whether to ask for rows as they are instead of entries.
    ///   - lease: Milliseconds the exchange may take before another process may start its own.
    ///   - includesChanges: False while the device catches up in several answers.
    ///   - answerBytes: The bytes that the answer may have; nil for the server's limit.
    ///   - name: The name that the answer has to repeat.
    /// - Throws: `StoreError`, `SQLiteError`; nothing is changed then.
    package func gather(
        owner: String, isGone: (_ owner: String) -> Bool = { _ in false }, lease: Int64,
        byteLimit: Int, answerBytes: Int? = nil, name: String? = nil, includesChanges: Bool,
        wantsRows: Bool = false, now: Int64
    ) throws -> Gathered {
        try inApplyingTransaction {
            if let until = try leaseOfOther(than: owner, isGone: isGone, now: now) {
                return .leased(until: until)
            }
            try takeLease(owner: owner, until: now + lease)
            try closeExternalCapture(applying, now: now)
            let outbox = Outbox(store: applying)
            let standing = try standing
            var request = standing.request(wantsRows: wantsRows)
            asked = Standing.Asked(
                named: request.maxRevision, cursor: standing.cursor.revision,
                rejoining: standing.rejoining)
            request.purged = standing.receipt
            asked.hasReceipt = request.purged != nil
            request.clientID = try clientID
            request.protocolVersion = WireVersion.current
            request.acknowledged = try outbox.acknowledged()
            request.dataSet = standing.dataSet ?? expectedDataSet
            request.schema = applying.schema.fingerprint
            request.rules = standing.rules
            request.answerBytes = answerBytes.map(Int64.init)
            request.request = name
            let pieces =
                includesChanges && standing.maySend
                ? try outbox.freeze(byteLimit: byteLimit, upTo: standing.rejoining) : []
            var body = try SyncCoder.requestHead(request)
            body.reserveCapacity(body.count + pieces.reduce(16) { $0 + $1.bytes.count + 1 })
            for (index, piece) in pieces.enumerated() {
                if index > 0 { body.append(UInt8(ascii: ",")) }
                body += piece.bytes
            }
            body += SyncCoder.tail
            return .request(body, changeSets: pieces.map(\.identifier))
        }
    }

    /// Applies part of an answer, the revision it leads to, assigned ids and receipts, in one
    /// transaction.
    ///
    /// Any run of whole sets in the answer's order leaves a true state. A large answer is therefore
    /// applied in slices, and the user's own writes get their turn in between. An answer with a
    /// difference, or one that follows staged changes, is applied as a whole, together with the
    /// staged changes.
    /// - Parameters:
    ///   - reaching: The revision after the run.
    ///   - lineage: The hash of that revision's entry, if the answer names it.
    ///   - end: The end of the answer, if this is not the last run.
    /// - Returns: The effects; nil if the answer no longer fits this file, because another process
    ///   exchanges for it or it has another revision by now. Nothing was applied then.
    /// - Throws: `StoreError`, `SQLiteError`; nothing was applied then.
    package func apply(
        _ sets: ArraySlice<ChangeSet>, reaching: Revision, lineage: String?,
        before end: HistoryMark? = nil, dataSet: String?, owner: String, now: Int64
    ) throws -> RebaseReport? {
        try inMendingTransaction { () -> RebaseReport? in
            var standing = try standing
            let sources = try sources(standing.staged)
            guard try leaseOfOther(than: owner, now: now) == nil,
                standing.fits(sets, answering: asked, isOnStaged: !sources.isEmpty)
            else { return nil }
            let report =
                if let common = asked.rejoining {
                    try rejoin(
                        sets, upTo: common, from: standing, on: sources, reaching: reaching,
                        lineage: lineage, dataSet: dataSet, now: now)
                } else {
                    try reconcile(
                        sets, from: &standing, on: sources, reaching: reaching, lineage: lineage,
                        before: end, dataSet: dataSet, now: now)
                }
            if lineage != nil {
                try Outbox(store: applying).markLineage()
            } else if let end, standing.former == nil {
                try Outbox(store: applying).note(end)
            }
            try applying.setState("lastExchange", .integer(now))
            observer?.applyingWillCommit(report)
            return report
        }
    }

    /// Applies remote change, and stores the new standing, in the caller's transaction. Remote
    /// change of every source passes here.
    func reconcile(
        _ sets: ArraySlice<ChangeSet>, from standing: inout Standing,
        on sources: Rebase.DataSources, reaching: Revision, lineage: String? = nil,
        before end: HistoryMark? = nil, dataSet: String? = nil, now: Int64
    ) throws -> RebaseReport {
        let before = standing
        try closeExternalCapture(applying, now: now)
        try applying.setCapture(false)
        var rebase = Rebase(
            store: applying, registry: registry, now: now,
            isRefetching: reaching < before.refetching?.goal ?? 0, missing: before.missing,
            mostKeptBytes: mostKeptBytes)
        // Nobody says what left the view while everything was fetched again. If a snapshot comes, the user
        // sees everything, and records of its other parts are still missing.
        rebase.isForView =
            before.refetching.map { reaching >= $0.goal } == true
            && (before.view != nil || asked.showsPart) && before.missing == nil
            && sources.manifest == nil
        rebase.seesPart = before.view ?? 0 != 0 || asked.showsPart
        try rebase.apply(sets, after: before.revision, on: sources)
        standing.reach(
            reaching, lineage: lineage, before: end, dataSet: dataSet,
            isWhole: sources.manifest != nil)
        standing.missing = rebase.missing
        if !sources.isEmpty { try clearStaged(&standing) }
        try purge(
            rebase.isForView ? nil : rebase.hidden, had: rebase.hidden, &standing)
        try standing.write(to: applying, over: before)
        try storePassedOver(rebase.report.passedOver)
        try applying.setCapture(true)
        return rebase.report
    }

    /// Extends the lease if this owner holds it.
    func renewLease(owner: String, until: Int64) throws {
        try inApplyingTransaction {
            let update = try applying.connection.statement(
                "UPDATE martlet_lease SET until = ? WHERE owner = ?")
            update.bind(1, integer: until)
            update.bind(2, text: owner)
            try update.run()
        }
    }

    /// Refuses a set because it cannot be sent, and also the sets that were made on top of it.
    func refuse(_ identifier: String, message: String, now: Int64) throws -> RebaseReport {
        try inMendingTransaction {
            var refusal = ChangeSet()
            refusal.identifier = identifier
            refusal.conflict = true
            refusal.reason = .invalid
            refusal.message = message
            var standing = try standing
            let current = standing.revision
            let report = try reconcile(
                [refusal], from: &standing, on: Rebase.DataSources(), reaching: current, now: now)
            observer?.applyingWillCommit(report)
            return report
        }
    }

    /// Ends the lease, so that another process does not wait for its time to pass.
    package func releaseLease(owner: String) throws {
        try inApplyingTransaction {
            let delete = try applying.connection.statement(
                "DELETE FROM martlet_lease WHERE owner = ?")
            delete.bind(1, text: owner)
            try delete.run()
        }
    }

    func leaseOfOther(
        than owner: String, isGone: (_ owner: String) -> Bool = { _ in false }, now: Int64
    ) throws -> Int64? {
        let find = try applying.connection.statement(
            "SELECT until, owner FROM martlet_lease WHERE owner <> ? AND until > ?")
        find.bind(1, text: owner)
        find.bind(2, integer: now)
        defer { find.reset() }
        guard try find.step(), !isGone(find.text(1)) else { return nil }
        return find.integer(0)
    }

    func takeLease(owner: String, until: Int64) throws {
        let put = try applying.connection.statement(
            "INSERT OR REPLACE INTO martlet_lease(one, owner, until) VALUES (1, ?, ?)")
        put.bind(1, text: owner)
        put.bind(2, integer: until)
        try put.run()
    }

    /// Takes a new name, because the server knows another file under the old one: the file was
    /// copied, or restored from a backup. Sets keep their identifiers, so none is applied twice.
    package func renewIdentity() throws {
        try changeStanding { standing in
            try applying.setState("clientID", .text(newIdentity()))
            // The server waits for the new device, too.
            standing.owesReceipt = standing.view != nil
        }
    }
}

// MARK: - Decisions about refused sets

extension DeviceStore {
    /// Returns the refused change sets, oldest first, each record with base, mine and theirs.
    package func parked() throws -> [ParkedSet] {
        try Parking(store: applying).list()
    }

    /// Gives a refused set up: the server's rows stay as they are.
    /// - Throws: `StoreError` `.unknown` if there is no such set.
    package func drop(_ identifier: String, now: Int64) throws {
        try inApplyingTransaction {
            let parking = Parking(store: applying)
            let sequence = try parking.sequence(of: identifier)
            try parking.remove(sequence)
            try parking.keep(
                Receipt(identifier: identifier, outcome: .dropped), sequence: sequence, now: now)
        }
    }

    /// Redoes a refused set's edits, on top of the server's present rows, as a new change set.
    /// - Returns: The new set's identifier.
    /// - Throws: `StoreError` `.unknown` if there is no such set; `.value` if the edits do not fit
    ///   the present rows; the set then stays parked.
    @discardableResult
    package func retry(_ identifier: String, now: Int64) throws -> String {
        try inApplyingTransaction {
            try closeExternalCapture(applying, now: now)
            try applying.setCapture(false)
            let parking = Parking(store: applying)
            let sequence = try parking.sequence(of: identifier)
            let new = try Retry(store: applying).run(
                sequence, identifier: newIdentity(), now: now)
            try parking.remove(sequence)
            try parking.keep(
                Receipt(identifier: identifier, outcome: .retried), sequence: sequence, now: now)
            try applying.setCapture(true)
            observer?.applyingWillCommit(nil)
            return new
        }
    }

    /// Returns the receipts of the newest sets, newest first.
    package func receipts(limit: Int) throws -> [Receipt] {
        let rows = try applying.connection.statement(
            """
            SELECT identifier, outcome, revision, reason, message FROM martlet_receipts
            ORDER BY sequence DESC LIMIT ?
            """)
        rows.bind(1, integer: Int64(limit))
        defer { rows.reset() }
        var receipts: [Receipt] = []
        while try rows.step() {
            guard let outcome = Receipt.Outcome(rawValue: rows.text(1)) else { continue }
            receipts.append(
                Receipt(
                    identifier: rows.text(0), outcome: outcome,
                    revision: rows.isNull(2) ? nil : rows.integer(2),
                    reason: rows.isNull(3) ? nil : RefusalReason(rawValue: rows.text(3)),
                    message: rows.isNull(4) ? nil : rows.text(4)))
        }
        return receipts
    }
}
