import MartletModel

/// Takes external writes into the log.
extension DataSetNode {
    /// Returns the number of entries that were made from external writes since the last call.
    package func takeExternalCount() -> Int {
        defer { external.committed = 0 }
        return external.committed
    }

    /// Makes entries from external writes to the tables, in a transaction of its own.
    ///
    /// On a fault nothing has changed, and `takeFault` returns the fault.
    ///
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: True if more writes wait.
    package func takeExternalWrites(now: Int64) -> Bool {
        lastTime = now
        do throws(StorageFault) {
            if needsRecovery { try recover() }
            try commit(try begin(now: now, maxBytes: Self.externalBytes))
            return try storage.look().hasExternalWrites
        } catch {
            needsRecovery = true
            fault = faultAfterRecovery(from: error)
            return false
        }
    }

    /// The most parts of waiting writes that one call takes in.
    package static let intakeSteps = 1_000

    /// Takes one step towards a moment at which no external write waits for the log: it takes in
    /// waiting writes or, if there are none, runs `body` while no other program can write.
    ///
    /// It needs a storage in which a transaction excludes all other writers.
    ///
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: True if `body` was run.
    /// - Throws: The storage's fault, or the one that `body` throws.
    package func whenCaughtUp(
        now: Int64, _ body: () throws(StorageFault) -> Void
    ) throws(StorageFault) -> Bool {
        lastTime = now
        do throws(StorageFault) {
            if needsRecovery { try recover() }
            let entries = try begin(now: now, maxBytes: Self.externalBytes)
            let isCaughtUp = entries.isEmpty && !storage.isExternalParted
            if isCaughtUp { try body() }
            try commit(entries)
            return isCaughtUp
        } catch {
            needsRecovery = true
            // The caller reports it, and no batch of the writer has failed.
            throw faultAfterRecovery(from: error)
        }
    }

    /// Runs `body` at such a moment, for reads on the node's own thread.
    ///
    /// - Throws: `StorageFault.neverCaughtUp` if external writes do not end; the storage's fault.
    package func whenCaughtUp(_ body: () throws(StorageFault) -> Void) throws(StorageFault) {
        for _ in 0..<Self.intakeSteps where try whenCaughtUp(now: lastTime, body) { return }
        throw StorageFault.neverCaughtUp
    }

    // MARK: - Transactions

    /// The bytes of other processes' entries that are read within a transaction, for the feed.
    private static let followedBytes = 1 << 20

    /// Begins a transaction in which the log has all external writes that no set may pass over.
    /// Writes that do not fit into it are committed before.
    func beginWhole(now: Int64) throws(StorageFault) -> [LogEntry] {
        for _ in 0..<Self.intakeSteps {
            let entries = try begin(now: now, maxBytes: Self.externalBytes)
            guard storage.isExternalParted else { return entries }
            try commit(entries)
        }
        throw StorageFault.neverCaughtUp
    }

    /// Begins a transaction, and brings memory up to the commits of other processes before it. If the log is
    /// another one than before, all views are retired.
    ///
    /// - Returns: The entries that were made from external writes. They are committed with the
    ///   rest.
    func begin(now: Int64, maxBytes: Int) throws(StorageFault) -> [LogEntry] {
        let entries = try beginFollowing(now: now, maxBytes: maxBytes)
        otherLogs.open = feed.otherLogCount
        if otherLogs.open != otherLogs.committed {
            try storage.views.retireAll()
            feed.forgetDevices()
            feed.views.forget()
            viewIndex.reset()
        }
        return entries
    }

    private func beginFollowing(now: Int64, maxBytes: Int) throws(StorageFault) -> [LogEntry] {
        self.external.open = 0
        let external = try storage.begin(now: now, maxBytes: maxBytes)
        self.external.open = external.count
        var end = storage.head
        if let first = external.first {
            let version = feed.cache.version
            guard
                first.revision != version.head.revision + 1
                    || first.hash
                        != version.head.hash.appending(first.body, identifier: first.identifier)
            else {
                feed.cache.raise(floor: storage.floor)
                return external
            }
            end.revision = first.revision - 1
            guard let hash = try log.hash(at: end.revision) else {
                throw StorageFault(.failed, "the log lacks an entry")
            }
            end.hash = hash
        }
        try feed.follow(
            to: end, floor: storage.floor, from: feed.cache.version, log: log,
            maxBytes: Self.followedBytes)
        return external
    }

    /// Commits the transaction, and adds its entries to memory.
    func commit(_ entries: [LogEntry]) throws(StorageFault) {
        if let policies { try viewIndex.follow(storage, policies, makes: false) }
        committing(true)
        defer { committing(false) }
        try storage.commit()
        if policies != nil {
            // It is known whom the entries concern before listeners can ask for them.
            let (people, after) = viewIndex.takeConcerned()
            feed.views.note(concerned: people, after: after, through: storage.head.revision)
        }
        external.committed += external.open
        external.open = 0
        otherLogs.committed = otherLogs.open
        feed.cache.append(entries)
        if feed.head != storage.head { feed.reset(to: storage.head, floor: storage.floor) }
    }
}

extension StorageFault {
    /// The fault of external writes that do not end.
    package static let neverCaughtUp = StorageFault(
        .busy, "other programs write faster than the log takes it in")
}
