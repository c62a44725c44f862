package import MartletModel
package import MartletProtocol

extension SetWork {
    /// Returns the log entry of the set once it was carried out, and the set as the entry has it.
    /// - Parameters:
    ///   - stored: The set with the values that the storage has now.
    ///   - created: The temporary ids of the created records, in their order.
    ///   - head: The end of the log, which the entry follows.
    /// - Throws: `Refusal` if no device could be sent the entry.
    package func entry(
        _ stored: ChangeSet, created: [RecordID?], after head: LogHead
    ) throws(Refusal) -> (entry: LogEntry, set: ChangeSet) {
        var set = stored
        set.timestamp = timestamp
        let body: [UInt8]
        do throws(WireFault) {
            body = try SyncCoder.encode(set)
        } catch {
            throw Refusal(
                .constraint, "the database stored a value no device can be sent: \(error.message)")
        }
        if let refusal = SetMeasure.refusal(ofEntryBytes: body.count) { throw refusal }
        let entry = LogEntry(
            revision: head.revision + 1, device: request.device,
            identifier: request.identifier, sequence: request.sequence,
            temporaries: AuthorFormat.temporaries(created), body: body,
            hash: head.hash.appending(body, identifier: request.identifier), time: now)
        return (entry, set)
    }
}
