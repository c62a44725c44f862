import CompressionKit
import MartletModel
import MartletProtocol

/// Makes an answer: the entries after a revision, the device's own in their author's format, then
/// the refused sets. It is cut between two sets if it would grow too long.
struct AnswerBuilder {
    let cache: LogCache
    /// The history that the cache held when the answer was begun.
    let generation: Int
    /// The log; nil if only memory may be used.
    let log: (any LogSource)?
    let identity: String
    let fingerprint: String
    /// The most bytes of change sets in one answer.
    let answerBytes: Int
    /// The least bytes of rows after which a part of a difference may end within a revision.
    let partBytes: Int

    struct Query: Sendable {
        let principal: Principal
        /// The device's number; 0 if it is not known.
        let device: Int64
        let since: Revision
        /// The end of the log that the answer is to reach.
        let head: LogHead
        let acceptsGzip: Bool
        /// True if the request names neither a client nor a protocol. It then gets the bare answer.
        let isPlainRequest: Bool
        /// The entries that are sent in their author's format, even if they are not after `since`.
        var own: [Revision: [UInt8]] = [:]
        /// The views between which the device moves; nil if it sees everything, and has.
        var views: ViewChange?
        /// The rules that the device is to have; nil if it has them.
        var rules: UserRules?
        /// True if the data set has policies.
        var hasPolicies = false
        var refused: [ChangeSet] = []
        /// True if some sets of the request get their verdicts only when they are sent again.
        var hasPostponed = false
        /// True if the device asks for rows in place of entries.
        var wantsRows = false
        /// The row after which the difference continues within a revision.
        var cursor: RowCursor?
        /// The result of a comparison of the device's state.
        var check: CheckAnswer?
        /// The most bytes of change sets that the device asked for.
        var answerBytes = Int.max
        /// The client id of the request, which the answer repeats.
        var clientID: String?
        var request: String?
    }

    /// The reason why no answer could be made.
    enum Failure: Error {
        /// An entry or a hash is not in memory, and there is no log to read.
        case notInMemory
        /// Compaction has emptied entries that are needed.
        case compacted
        case fault(StorageFault)
    }

    func answer(to query: Query) throws(Failure) -> PreparedAnswer {
        if query.wantsRows || query.views != nil || query.since < cache.floor {
            return try differenceAnswer(to: query)
        }
        do throws(Failure) {
            return try entriesAnswer(to: query)
        } catch {
            // The floor rose while the stored log was being read.
            guard case .compacted = error else { throw error }
            return try differenceAnswer(to: query)
        }
    }

    private func entriesAnswer(to query: Query) throws(Failure) -> PreparedAnswer {
        var body = AnswerBody(acceptsGzip: query.acceptsGzip, byteLimit: room(query))
        var reached = query.since
        var isCut = false
        for revision in query.own.keys.sorted() where revision <= query.since {
            guard let bytes = query.own[revision] else { continue }
            isCut = isCut || !body.add(bytes)
        }
        if !isCut { isCut = try !addEntries(&reached, &body, query) }
        var more = isCut || query.hasPostponed
        if !isCut {
            for set in query.refused {
                guard let bytes = try? SyncCoder.encode(set) else { continue }
                guard body.add(bytes) else {
                    // The device sends the remaining sets again and gets their verdicts then.
                    more = true
                    break
                }
            }
        }
        return try finish(
            body, query, at: reached, lineage: hash(at: reached, head: query.head).text,
            more: more)
    }

    /// Returns the bytes of change sets that the answer may have.
    func room(_ query: Query) -> Int {
        min(answerBytes, max(1, query.answerBytes))
    }

    func finish(
        _ body: AnswerBody, _ query: Query, at reached: Revision, lineage: String,
        more: Bool
    ) throws(Failure) -> PreparedAnswer {
        var head = SyncAnswer(maxRevision: reached, more: more)
        if !query.isPlainRequest {
            head.dataSet = identity
            head.lineage = lineage
            head.schema = fingerprint
            head.clientID = query.clientID
            head.from = query.since
            head.request = query.request
            head.view = query.views?.view.number ?? (query.hasPolicies ? View.everything : nil)
            head.rules = query.rules
        }
        head.check = query.check
        let start: [UInt8]
        do throws(WireFault) {
            start = try SyncCoder.answerHead(head)
        } catch {
            preconditionFailure("an answer's head can always be written: \(error)")
        }
        var answer = body.finish(
            head: start, tail: SyncCoder.tail, revision: reached, more: more)
        if let view = query.views?.view {
            answer.view = AnsweredView(number: view.number, revision: view.revision)
        }
        return answer
    }

    /// Returns the problem with a request that names another hash at its revision than this log
    /// has, or at the end of the answer that its device has in part; nil if there is none.
    func lineageProblem(
        _ request: SyncRequest, head: LogHead
    ) throws(Failure) -> Problem? {
        let own = request.lineage.map {
            HistoryMark(revision: request.maxRevision, lineage: $0)
        }
        guard let named = own ?? request.partOf else { return nil }
        var known: LineageHash?
        if named.revision == head.revision {
            known = head.hash
        } else if let held = cache.hash(at: named.revision) {
            known = held
        } else {
            guard let log else { throw .notInMemory }
            do throws(StorageFault) {
                known = try log.hash(at: named.revision)
            } catch {
                throw .fault(error)
            }
        }
        return known?.text == DeviceLineage(named.lineage).hash ? nil : RequestCheck.lineage
    }

    /// Returns the log's hash after an entry.
    func hash(at revision: Revision, head: LogHead) throws(Failure) -> LineageHash {
        if revision == head.revision { return head.hash }
        if let known = cache.hash(at: revision) { return known }
        guard let log else { throw .notInMemory }
        do throws(StorageFault) {
            if let stored = try log.hash(at: revision) { return stored }
        } catch {
            throw .fault(error)
        }
        throw .fault(StorageFault(.failed, "the log lacks an entry"))
    }

    // MARK: - Entries

    /// Adds the entries after `reached`.
    ///
    /// - Returns: True if all of them fitted.
    private func addEntries(
        _ reached: inout Revision, _ body: inout AnswerBody, _ query: Query
    ) throws(Failure) -> Bool {
        // Blocks begin only at some revisions. This is true if the next revision is one of them.
        var isBoundary = reached % LogCache.blockEntries == 0
        while reached < query.head.revision {
            let next = reached + 1
            let spanEnd = (reached / LogCache.blockEntries + 1) * LogCache.blockEntries
            if query.acceptsGzip, isBoundary, spanEnd <= query.head.revision,
                let block = try block(from: next, through: spanEnd),
                suits(block, query)
            {
                guard body.add(block.piece) else { return false }
                reached = block.last
                continue
            }
            let last = min(spanEnd, query.head.revision)
            for entry in try entries(from: next, through: last) {
                guard try add(entry, &body, query) else { return false }
                reached = entry.revision
            }
            isBoundary = reached % LogCache.blockEntries == 0
        }
        return true
    }

    /// Adds an entry.
    ///
    /// - Returns: True if it fitted.
    private func add(
        _ entry: LogEntry, _ body: inout AnswerBody, _ query: Query
    ) throws(Failure) -> Bool {
        if query.acceptsGzip, entry.body.count >= LogCache.largeEntryBytes,
            query.own[entry.revision] == nil,
            query.device == 0 || entry.device != query.device
        {
            let block = block(of: entry)
            if suits(block, query) { return body.add(block.piece) }
        }
        return body.add(try form(of: entry, query))
    }

    /// Returns a large entry as a block of its own. Many devices that are a little behind receive
    /// the entry, and to compress it for each of them would cost more than the rest of their
    /// answers.
    private func block(of entry: LogEntry) -> LogCache.Block {
        if let held = cache.block(from: entry.revision), held.last == entry.revision {
            return held
        }
        let block = LogCache.Block(
            first: entry.revision, last: entry.revision,
            piece: DeflatePiece(compressing: entry.body), devices: [entry.device])
        cache.keep(block, of: generation)
        return block
    }

    private func suits(_ block: LogCache.Block, _ query: Query) -> Bool {
        // If the block does not fit, its entries are added one by one, as far as they fit.
        block.piece.uncompressedCount < room(query)
            && (query.device == 0 || !block.devices.contains(query.device))
            && !query.own.keys.contains { (block.first...block.last).contains($0) }
    }

    private func form(of entry: LogEntry, _ query: Query) throws(Failure) -> [UInt8] {
        if let own = query.own[entry.revision] { return own }
        guard query.device != 0, entry.device == query.device else { return entry.body }
        do throws(WireFault) {
            return try AuthorFormat.bytes(of: entry)
        } catch {
            throw .fault(StorageFault(.failed, "an entry of the log cannot be read: \(error)"))
        }
    }

    /// Returns the entries from `first` on: at least one, and no more bytes than a block holds. If
    /// the first is longer than a device takes, or was emptied, it throws `compacted`, and rows
    /// replace the entry.
    func entries(
        from first: Revision, through last: Revision
    ) throws(Failure) -> [LogEntry] {
        let held = cache.entries(from: first, through: last, maxBytes: LogCache.blockBytes) ?? []
        let found = held.isEmpty ? try storedEntries(from: first, through: last) : held
        let whole = found.prefix { !$0.body.isEmpty && $0.body.count <= Limits.entryBytes }
        guard !whole.isEmpty else { throw .compacted }
        return Array(whole)
    }

    private func storedEntries(
        from first: Revision, through last: Revision
    ) throws(Failure) -> [LogEntry] {
        guard let log else { throw .notInMemory }
        let found: [LogEntry]
        do throws(StorageFault) {
            found = try log.entries(from: first, through: last, maxBytes: LogCache.blockBytes)
        } catch {
            throw .fault(error)
        }
        guard found.first?.revision == first else {
            throw .fault(StorageFault(.failed, "the log lacks an entry"))
        }
        return found
    }

    /// Returns the block that begins at `first`, and makes it if there is none yet.
    private func block(
        from first: Revision, through last: Revision
    ) throws(Failure) -> LogCache.Block? {
        if let held = cache.block(from: first) { return held }
        if let stored = try storedBlock(from: first, through: last) { return stored }
        guard let block = LogCache.Block(of: try entries(from: first, through: last)) else {
            return nil
        }
        cache.keep(block, of: generation)
        return block
    }

    /// Returns a block that the log has stored; nil if the log has none, or memory has the entries.
    private func storedBlock(
        from first: Revision, through last: Revision
    ) throws(Failure) -> LogCache.Block? {
        guard let log, cache.entries(from: first, through: first, maxBytes: 1) == nil else {
            return nil
        }
        do throws(StorageFault) {
            guard let block = try log.block(from: first, through: last) else { return nil }
            cache.keep(block, of: generation)
            return block
        } catch {
            throw .fault(error)
        }
    }
}
