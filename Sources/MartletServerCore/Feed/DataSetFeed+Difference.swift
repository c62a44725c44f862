import MartletModel
import MartletProtocol

extension DataSetFeed {
    /// Returns the rows that changed after a cursor, in the order in which they last changed.
    ///
    /// The rows of one revision stay together. If a revision has more than a batch holds, the
    /// server tells the listener that it is behind, and the listener fetches the rows with
    /// `POST /sync`.
    func difference(
        _ request: DeltaRequest, _ builder: AnswerBuilder
    ) throws(AnswerBuilder.Failure) -> DeltaBatchBytes {
        let part = try builder.difference(
            DifferenceRequest(
                since: request.since, cursor: request.rowCursor,
                maxBytes: request.byteLimit, partBytes: Limits.differenceBytes,
                keepsRevisions: true))
        guard part.isWhole || part.reached > request.since else {
            return behind(request, part.head)
        }
        var batch = DeltaBatch(
            from: request.since, deltas: [], nextVersion: part.reached, dataSet: identity,
            lineage: try builder.lineage(
                of: part, after: request.since, nil, more: !part.isWhole),
            more: !part.isWhole)
        batch.isDifference = true
        let times = try builder.times(of: part)
        batch.deltas.reserveCapacity(part.rows.count)
        for row in part.rows {
            batch.deltas.append(try delta(row, seconds: (times[row.position] ?? 0) / 1_000))
        }
        var made = DeltaBatchBytes(
            json: SyncCoder.encode(batch), nextVersion: part.reached, position: part.reached,
            isEmpty: part.reached == request.since && part.cursor == nil, more: !part.isWhole,
            isDifference: true, isBehind: false, devices: [])
        made.cursor = part.cursor
        return made
    }

    private func delta(
        _ row: DifferencePart.Row, seconds: Int64
    ) throws(AnswerBuilder.Failure) -> Delta {
        var delta = Delta(
            version: row.position, seconds: seconds, type: row.type, id: row.id.description,
            operation: .delete)
        guard let attributes = row.attributes else { return delta }
        delta.operation = .upsert
        delta.isNew = true
        delta.recordRevision = row.revision == row.position ? nil : row.revision
        do throws(WireFault) {
            delta.payload = String(
                decoding: try SyncCoder.encode(attributes), as: UTF8.self)
        } catch {
            throw .fault(StorageFault(.failed, "a row cannot be sent: \(error.message)"))
        }
        return delta
    }
}
