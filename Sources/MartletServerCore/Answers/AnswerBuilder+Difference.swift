import MartletModel
import MartletProtocol

extension AnswerBuilder {
    /// The rows that changed after the device's revision in place of entries, then the sets of the
    /// request: accepted ones in their own form, refused ones.
    ///
    /// All is read at one moment, after the request's own sets have been committed. If the rows do
    /// not fit, they are the whole answer. The verdicts then come with the last part, when the
    /// device sends its sets again, because only then has it a state to which they apply. Sets that
    /// do not fit with the last part get their verdicts when they are sent again, too.
    func differenceAnswer(to question: Question) throws(Failure) -> PreparedAnswer {
        let limit = room(question)
        let part = try difference(
            DifferenceRequest(
                since: question.since, cursor: question.cursor, maxBytes: limit,
                partBytes: min(max(3 * limit, partBytes), Limits.differenceBytes)))
        let rows = try encoded(filter.rows(part, for: question.principal).changeSet)
        var sets: [[UInt8]] = []
        if part.isWhole {
            for revision in question.own.keys.sorted() {
                guard let bytes = question.own[revision] else { continue }
                sets.append(filter.entry(bytes, for: question.principal))
            }
            for set in question.refused { sets.append(try encoded(set)) }
        }
        var body = AnswerBody(acceptsGzip: question.acceptsGzip, byteLimit: limit)
        body.addInAnyCase(rows)
        var more = !part.isWhole || question.hasPostponed
        // Without rows, or with few bytes of rows, at least one set goes, so that this comes to an
        // end; small ones go together.
        let isLight = part.rows.isEmpty || rows.count <= limit / 2
        let room = isLight ? max(limit, 64 << 10) : limit
        for (index, set) in sets.enumerated() {
            guard body.byteCount + set.count <= room || isLight && index == 0 else {
                more = true
                break
            }
            body.addInAnyCase(set)
        }
        var answer = try finish(
            body, question, at: part.reached, lineage: lineage(of: part, more: more), more: more)
        answer.isDifference = true
        return answer
    }

    /// The next part of a difference, up to the newest entry that is known in memory.
    func difference(_ question: DifferenceRequest) throws(Failure) -> DifferencePart {
        guard let log else { throw .notInMemory }
        do throws(StorageFault) {
            return try log.difference(question) {
                // A commit may be visible in the file before the feed knows of it, and a device
                // that named its revision would then be ahead of the server.
                cache.head.revision
            }
        } catch {
            throw .fault(error)
        }
    }

    /// What an answer with the part names as its lineage.
    func lineage(of part: DifferencePart, more: Bool) throws(Failure) -> String {
        let hash = try hash(at: part.reached, head: part.head)
        return more ? UnfinishedLineage.text(hash, part.cursor) : hash.text
    }

    /// When the entries were accepted at which the rows of a part stand.
    func times(of part: DifferencePart) throws(Failure) -> [Revision: Int64] {
        guard let log else { throw .notInMemory }
        var places: [Revision] = []
        for row in part.rows where places.last != row.place { places.append(row.place) }
        do throws(StorageFault) {
            return try log.times(of: places)
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
