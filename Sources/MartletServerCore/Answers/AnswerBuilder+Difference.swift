import MartletModel
import MartletProtocol

extension AnswerBuilder {
    /// Returns an answer with the rows that changed after the device's revision in place of
    /// entries, and then the sets of the request: accepted ones in their author's format, and
    /// refused ones.
    ///
    /// All of it is read at one moment, after the request's own sets have been committed. If the
    /// rows do not fit, they are the whole answer. The verdicts then arrive with the last part,
    /// when the device sends its sets again, because only then has it a state to which they apply.
    /// Sets that do not fit with the last part also get their verdicts when they are sent again.
    func differenceAnswer(to query: Query) throws(Failure) -> PreparedAnswer {
        let limit = room(query)
        let part = try difference(
            DifferenceRequest(
                since: query.since, cursor: query.cursor, maxBytes: limit,
                partBytes: min(max(3 * limit, partBytes), Limits.differenceBytes),
                views: query.views))
        var rows: [[UInt8]] = []
        for set in part.changeSets { rows.append(try encoded(set)) }
        var sets: [[UInt8]] = []
        if part.isWhole {
            for revision in query.own.keys.sorted() {
                guard let bytes = query.own[revision] else { continue }
                sets.append(bytes)
            }
            for set in query.refused { sets.append(try encoded(set)) }
        }
        var body = AnswerBody(acceptsGzip: query.acceptsGzip, byteLimit: limit)
        // A device that is limited to a view gets rows even if nothing has changed.
        if query.views == nil || !part.rows.isEmpty || part.reached > query.since {
            for set in rows { body.addInAnyCase(set) }
        }
        var more = !part.isWhole || query.hasPostponed || part.isOvertaken
        // If there are few bytes of rows or none, the answer has at least one set, so that the
        // exchange ends. Small sets share an answer.
        let isLight = part.rows.isEmpty || rows.reduce(0) { $0 + $1.count } <= limit / 2
        let room = isLight ? max(limit, 64 << 10) : limit
        for (index, set) in sets.enumerated() {
            guard body.byteCount + set.count <= room || isLight && index == 0 else {
                more = true
                break
            }
            body.addInAnyCase(set)
        }
        var answer = try finish(
            body, query, at: part.reached,
            lineage: lineage(of: part, after: query.since, query.views, more: more), more: more)
        answer.isDifference = true
        return answer
    }

    /// Returns the next part of a difference, up to the newest entry that memory knows.
    func difference(_ request: DifferenceRequest) throws(Failure) -> DifferencePart {
        let head = cache.head
        if let views = request.views, !views.isMove, request.cursor == nil,
            request.since == views.view.revision, request.since <= head.revision
        {
            return DifferencePart(rows: [], reached: request.since, head: head, end: request.since)
        }
        guard let log else { throw .notInMemory }
        do throws(StorageFault) {
            return try log.difference(request) {
                // A commit may be visible in the file before the feed knows it. A device that named
                // its revision would then be ahead of the server.
                min(cache.head.revision, request.views?.view.revision ?? .max)
            }
        } catch {
            throw .fault(error)
        }
    }

    /// Returns the lineage that an answer with the part names.
    func lineage(
        of part: DifferencePart, after since: Revision, _ views: ViewChange?, more: Bool
    ) throws(Failure) -> String {
        let hash = try hash(at: part.reached, head: part.head)
        var reached = views.map { [$0.view.number] } ?? []
        // The records that move arrive in the revision after the device's.
        if let views, views.isMove, part.reached == since { reached = views.held + reached }
        return DeviceLineage(
            hash: hash.text, views: reached, isUnfinished: more, cursor: part.cursor
        ).text
    }

    /// Returns the times at which the entries of the part's rows were accepted, by revision.
    func times(of part: DifferencePart) throws(Failure) -> [Revision: Int64] {
        guard let log else { throw .notInMemory }
        var revisions: [Revision] = []
        for row in part.rows where revisions.last != row.position { revisions.append(row.position) }
        do throws(StorageFault) {
            return try log.times(of: revisions)
        } catch {
            throw .fault(error)
        }
    }

    private func encoded(_ set: ChangeSet) throws(Failure) -> [UInt8] {
        do throws(WireFault) {
            return try SyncCoder.encode(set)
        } catch {
            throw .fault(StorageFault(.failed, "a row cannot be sent: \(error.message)"))
        }
    }
}
