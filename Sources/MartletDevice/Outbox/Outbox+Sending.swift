internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

extension Outbox {
    /// Returns the sets of the next request, as bytes, and freezes those that were never sent.
    /// Leaves out sets whose verdicts are staged.
    ///
    /// Runs in the caller's transaction, which must be durable before the bytes leave.
    /// - Parameters:
    ///   - byteLimit: Stop before this many bytes; at least one set is always returned.
    ///   - common: Return only sets that were sent and rest on nothing newer than this revision;
    ///     nil for all.
    func freeze(
        byteLimit: Int, upTo common: Revision? = nil
    ) throws -> [(identifier: String, bytes: [UInt8])] {
        let condition = common.map { "AND sent = 1 AND \(Self.isCommon(upTo: $0))" } ?? ""
        let rows = try store.connection.statement(
            """
            SELECT sequence, identifier, seen, timestamp, sent, frozen, bytes FROM martlet_outbox
            WHERE identifier NOT IN (
                SELECT identifier FROM martlet_inbox WHERE identifier IS NOT NULL) \(condition)
            ORDER BY sequence LIMIT \(Limits.changeSetsPerRequest)
            """)
        defer { rows.reset() }
        let former = try FormerNames(store.connection)
        var pieces: [(identifier: String, bytes: [UInt8])] = []
        var fresh: [(sequence: Int64, bytes: [UInt8])] = []
        var total = 0
        while try rows.step() {
            let isSent = rows.integer(4) != 0
            if !pieces.isEmpty, total + Int(rows.integer(6)) > byteLimit { break }
            let bytes: [UInt8]
            if isSent {
                bytes = rows.blob(5)
            } else {
                bytes = try encode(
                    sequence: rows.integer(0), identifier: rows.text(1), seen: rows.integer(2),
                    timestamp: rows.text(3), former)
                fresh.append((rows.integer(0), bytes))
            }
            total += bytes.count
            pieces.append((rows.text(1), bytes))
        }
        for (sequence, bytes) in fresh {
            let update = try store.connection.statement(
                "UPDATE martlet_outbox SET sent = 1, frozen = ?, bytes = ? WHERE sequence = ?")
            update.bind(1, blob: bytes)
            update.bind(2, integer: Int64(bytes.count))
            update.bind(3, integer: sequence)
            try update.run()
            // Its bytes may contain ids that were assigned after the set was made.
            try noteBasis(of: sequence)
        }
        if !fresh.isEmpty { try noteLineage() }
        return pieces
    }

    private func encode(
        sequence: Int64, identifier: String, seen: Revision, timestamp: String,
        _ former: FormerNames
    ) throws -> [UInt8] {
        var set = ChangeSet()
        set.identifier = identifier
        set.sequence = sequence
        set.seen = seen
        set.timestamp = timestamp
        // The bytes that were written when the change was captured.
        var attributes: [[UInt8]] = []
        for change in try changes(of: sequence) {
            let name = try store.typeName(ofNumber: change.number)
            if set.types.last?.name != name {
                set.types.append(TypeChanges(name: name))
            }
            let last = set.types.count - 1
            var entry = RecordEntry(id: change.id)
            switch change.operation {
            case .create: set.types[last].create.append(change.id)
            case .update: set.types[last].update.append(change.id)
            case .delete: set.types[last].delete.append(change.id)
            }
            if change.operation != .create { entry.revision = change.baseRevision }
            set.types[last].entries.append(entry)
            attributes.append(
                former.isEmpty
                    ? change.after ?? []
                    : try SyncCoder.encode(
                        former.sent(
                            change.attributes(), type: change.number, sequence: sequence)))
        }
        return try SyncCoder.encode(set, attributes: attributes)
    }

    /// Returns the sequence up to which every set has been answered, and the answer stored.
    func acknowledged() throws -> Int64 {
        if let first = try store.connection.integer("SELECT min(sequence) FROM martlet_outbox") {
            return first - 1
        }
        return try store.counter("nextSequence") - 1
    }
}
