internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Removes records that the user may not see any more, to the last byte.
///
/// The transaction that applies the server's answer removes rows and kept values. SQLite overwrites
/// what it deletes (`PRAGMA secure_delete`). The words in full-text indexes, the bytes in nodes of R*Trees,
/// the samples of ANALYZE, the pages of the log in front of the file, and the copies that SQLite left in
/// pages follow at the end of the exchange.
extension DeviceStore {
    /// Removes what is kept of hidden records, in the caller's transaction.
    /// - Parameters:
    ///   - hidden: The records that left the user's view; nil for all that are not there.
    ///   - had: Those that the device may have had.
    func purge(
        _ hidden: Set<RecordKey>?, had: Set<RecordKey>, _ standing: inout Standing
    ) throws {
        guard hidden?.isEmpty != true else { return }
        let purge = Purge(store: applying)
        try purge.run(hidden)
        for key in had where try purge.isAway(key) {
            standing.removed.add(row: try purge.hash(key))
        }
        standing.tracesFrom = 0
        standing.owesReceipt = true
        asked.hasReceipt = false
    }

    /// Notes which view the user has now and which rules concern him, and whether the server has got
    /// the receipt that the request had.
    /// - Returns: The standing afterwards.
    func noteUser(of answer: SyncAnswer) throws -> Standing {
        let before = try standing
        // Until the last part of an answer has come, the tables do not have what the rules read.
        let rules = answer.more ? nil : answer.rules
        guard answer.view != before.view || rules != nil || asked.hasReceipt else { return before }
        try changeStanding { standing in
            if asked.hasReceipt { standing.owesReceipt = false }
            if answer.view != standing.view { standing.owesReceipt = true }
            standing.view = answer.view
            guard let rules else { return }
            let new = rules == .none ? nil : rules
            standing.rules = new?.fingerprint
            try KnownRules.keep(new, in: applying)
        }
        asked.hasReceipt = false
        if rules != nil { observer?.rulesHaveChanged() }
        return try standing
    }

    /// Removes some bytes of hidden records that are still in the file or in its log.
    ///
    /// Each call is one step, after which other connections may write.
    /// - Parameter pages: The pages that one step reads to overwrite what is left in them. Each new beginning
    ///   doubles them, so that the last step comes although others write.
    /// - Returns: Whether nothing is left to do now. If another connection reads an older state, the
    ///   log stays until the next call.
    package func removeTraces(pages: Int64) throws -> Bool {
        let standing = try standing
        guard let page = standing.tracesFrom else { return true }
        try checkWritable()
        if standing.staged?.snapshot == nil, standing.missing == nil { removeFetchedPart() }
        if let reason = try missingTable() ?? unknownTable() {
            try noteFault(reason)
            return true
        }
        var failing: String?
        do {
            guard try page > 0 || cleanIndexes(&failing) else { return false }
        } catch let error as SQLiteError where failing != nil && !error.isBusy {
            try noteFault(
                "\(failing ?? ""): \(error.message); rebuild the index, or drop it")
            throw error
        }
        let connection = applying.connection
        // A save does not wait long for a reader.
        try connection.execute("PRAGMA busy_timeout = 200")
        let busy = try? connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
        try connection.execute("PRAGMA busy_timeout = \(LocalStore.busyTimeout)")
        guard busy == 0 else {
            if busy == 1 { try noteFault(Self.isBeingRead) }
            return true
        }
        do {
            return try overwritePages(pages)
        } catch let error as SQLiteError where error.isCorrupt {
            try noteFault(
                "the file is damaged: \(error.message). Begin with a new device file, and remove this one"
            )
            throw error
        }
    }

    /// Overwrites the bytes of some pages that hold nothing, in one transaction.
    /// - Returns: Whether nothing is left to do now.
    private func overwritePages(_ pages: Int64) throws -> Bool {
        let connection = applying.connection
        var version: Int64?
        let isAll = try changeStanding { standing in
            // Another process may have removed them, or other records.
            guard var page = standing.tracesFrom, page > 0 else { return !standing.hasTraces }
            version = try connection.dataVersion()
            // Somebody who wrote since the last step may have moved bytes to pages that are done.
            if page > 1, try sweep.mark != Sweep.Mark(version, ownChanges()) {
                page = 1
                sweep.beginnings += 1
            }
            let count = pages << min(sweep.beginnings, 16)
            switch try connection.overwriteGaps(from: page, count: count) {
            case .logIsUsed: return true
            case .next(let page): standing.tracesFrom = page
            // Free pages that cannot be overwritten leave the file.
            case .otherFormat where freePagesAreLeft(releasing: count): break
            case .done, .otherFormat:
                (standing.tracesFrom, standing.tracesFault) = (nil, nil)
                sweep.beginnings = 0
            }
            return !standing.hasTraces
        }
        if !isAll { sweep.mark = Sweep.Mark(version, try ownChanges()) }
        return isAll
    }

    /// Releases free pages to the disk, in the caller's transaction.
    /// - Returns: Whether there were any; false for a file that cannot shrink.
    private func freePagesAreLeft(releasing count: Int64) -> Bool {
        let connection = applying.connection
        func free() -> Int64 { (try? connection.integer("PRAGMA freelist_count")) ?? 0 }
        let before = free()
        guard before > 0 else { return false }
        try? connection.execute("PRAGMA incremental_vacuum(\(count))")
        return free() < before
    }

    /// Returns why removed records may still be in the file if another program has renamed or dropped their
    /// table; nil if no such table is missing.
    private func missingTable() throws -> String? {
        let connection = applying.connection
        let present = applying.numbers.map(String.init).joined(separator: ", ")
        let waiting = try connection.prepare(
            """
            SELECT number, name FROM martlet_types AS types WHERE number NOT IN (\(present)) AND EXISTS (
                SELECT 1 FROM martlet_records WHERE type = types.number AND revision < 0) ORDER BY name
            """
        ).rows { (row) throws(SQLiteError) in (number: row.integer(0), name: row.text(1)) }
        guard !waiting.isEmpty else { return nil }
        let away = try NotedColumns(connection: connection).recorded().away
        guard let (number, name) = waiting.first(where: { away[$0.number] != nil }) else {
            return nil
        }
        let moves = try MovedTables(connection).away
        guard let move = moves.first(where: { $0.number == number }) else {
            return
                "another program has renamed or dropped the table “\(name)”, from which records are to be removed;"
                + " give it its own name back, or make it again, without records"
        }
        return
            "another program has given the table “\(name)” the name “\(move.table)”, and records are to be removed"
            + " from it; give it its own name back (ALTER TABLE … RENAME TO …)"
    }

    private static let isBeingRead = """
        a connection has been reading the file since before they were removed, so their bytes stay in the file \
        and in its write-ahead log; end its read transaction, or the program that has it. The device tries \
        again after each exchange
        """

    /// Keeps the reason why the removal of bytes does not go on.
    private func noteFault(_ reason: String) throws {
        guard try standing.tracesFault != reason else { return }
        try changeStanding { $0.tracesFault = reason }
    }

    /// The progress of the removal of bytes.
    struct Sweep {
        /// Numbers that change if anybody writes to the file.
        struct Mark: Equatable {
            /// The version of the file, which another connection's commit changes.
            let version: Int64?
            /// The number of rows that the connection itself has changed.
            let changes: Int64?

            init(_ version: Int64?, _ changes: Int64?) {
                (self.version, self.changes) = (version, changes)
            }
        }

        /// The state of the file in the transaction of the last step.
        var mark: Mark?
        /// How often it had to begin again.
        var beginnings = 0
    }

    private func ownChanges() throws -> Int64? {
        try applying.connection.integer("SELECT total_changes()")
    }

    /// The reason why the device cannot remove all that it has of records which its user may not see any
    /// more; nil if there is none.
    package var unremovedReason: String? {
        get throws { try standing.tracesFault }
    }
}
