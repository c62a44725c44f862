import MartletProtocol

extension AnswerBuilder {
    /// The rows that changed after the device's revision in place of entries, then the sets of the
    /// request: accepted ones in their own form, refused ones.
    ///
    /// All is read at one moment, after the request's own sets have been committed. Where the rows
    /// do not fit, they are the whole answer: what the sets came to is told beside the last part,
    /// when the device sends them again, for only then is it a state that they can be told upon.
    func differenceAnswer(to question: Question) throws(Failure) -> PreparedAnswer {
        let part = try difference(after: question.since, maxBytes: answerBytes)
        let rows = try encoded(filter.rows(part, for: question.principal).changeSet)
        var sets: [[UInt8]] = []
        if part.isWhole {
            for revision in question.own.keys.sorted() {
                guard let bytes = question.own[revision] else { continue }
                sets.append(filter.entry(bytes, for: question.principal))
            }
            for set in question.refused { sets.append(try encoded(set)) }
        }
        let setBytes = sets.reduce(0) { $0 + $1.count }
        // With no rows, or rows of little weight, the sets go in any case, so that there is an end
        // to it.
        let isTooMuch =
            !part.rows.isEmpty && rows.count > answerBytes / 2
            && rows.count + setBytes > answerBytes
        let more = !part.isWhole || isTooMuch && !sets.isEmpty
        var body = AnswerBody(acceptsGzip: question.acceptsGzip, byteLimit: answerBytes)
        body.addInAnyCase(rows)
        if !more {
            for set in sets { body.addInAnyCase(set) }
        }
        var answer = try finish(
            body, question, at: part.reached, lineage: lineage(of: part, more: more), more: more)
        answer.isDifference = true
        return answer
    }

    /// The next part of a difference, up to the newest entry that is known in memory.
    func difference(after since: Revision, maxBytes: Int) throws(Failure) -> DifferencePart {
        guard let log else { throw .notInMemory }
        do throws(StorageFault) {
            return try log.difference(after: since, maxBytes: maxBytes) {
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
        return more ? UnfinishedLineage.text(hash) : hash.text
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
