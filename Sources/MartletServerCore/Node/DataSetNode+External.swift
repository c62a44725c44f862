import MartletModel

/// What other programs wrote to the tables, on its way into the log.
extension DataSetNode {
    /// How many entries were made of what other programs wrote since this was last asked.
    public func takeExternalCount() -> Int {
        defer { external.committed = 0 }
        return external.committed
    }

    /// Makes entries of what other programs wrote to the tables, in a transaction of its own.
    ///
    /// On a fault nothing has happened, and `takeFault` tells of it.
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: Whether there is more of it.
    public func takeExternalWrites(now: Int64) -> Bool {
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

    /// How many parts of what waits are taken in by one who does it all at once.
    package static let intakeSteps = 1_000

    /// One step towards a moment at which nothing of other programs waits for the log: takes in what
    /// waits, or, where nothing does, runs `body` while nobody else can write.
    ///
    /// Needs a storage in which a transaction keeps everybody out.
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: Whether `body` was run.
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
            let found = faultAfterRecovery(from: error)
            fault = found
            throw found
        }
    }

    /// Runs `body` at such a moment, for what is read on the node's own thread.
    package func whenCaughtUp(_ body: () throws(StorageFault) -> Void) throws(StorageFault) {
        for _ in 0..<Self.intakeSteps where try whenCaughtUp(now: lastTime, body) { return }
        throw StorageFault.neverCaughtUp
    }

    // MARK: - Transactions

    /// Bytes of what other processes wrote that are read within a transaction, for the feed.
    private static let followedBytes = 1 << 20

    /// Begins a transaction with all in the log that other programs wrote and no set may pass over.
    /// What of it does not go into one transaction is committed before.
    func beginWhole(now: Int64) throws(StorageFault) -> [LogEntry] {
        for _ in 0..<Self.intakeSteps {
            let entries = try begin(now: now, maxBytes: Self.externalBytes)
            guard storage.isExternalParted else { return entries }
            try commit(entries)
        }
        throw StorageFault.neverCaughtUp
    }

    /// Begins a transaction, with memory brought up to what others committed before it.
    /// - Returns: Entries made of what other programs wrote; they are committed with the rest.
    func begin(now: Int64, maxBytes: Int) throws(StorageFault) -> [LogEntry] {
        self.external.open = 0
        let external = try storage.begin(now: now, maxBytes: maxBytes)
        self.external.open = external.count
        var end = storage.head
        if let first = external.first {
            let place = feed.cache.place
            guard
                first.revision != place.head.revision + 1
                    || first.hash
                        != place.head.hash.appending(first.body, identifier: first.identifier)
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
            to: end, floor: storage.floor, from: feed.cache.place, log: log,
            maxBytes: Self.followedBytes)
        return external
    }

    /// Commits what was begun, and tells memory of its entries.
    func commit(_ entries: [LogEntry]) throws(StorageFault) {
        committing(true)
        defer { committing(false) }
        try storage.commit()
        external.committed += external.open
        external.open = 0
        feed.cache.append(entries)
        if feed.head != storage.head { feed.reset(to: storage.head, floor: storage.floor) }
    }
}

extension StorageFault {
    /// Other programs write without end.
    package static let neverCaughtUp = StorageFault(
        .busy, "other programs write faster than the log takes it in")
}
