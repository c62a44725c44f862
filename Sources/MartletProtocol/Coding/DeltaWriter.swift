public import MartletModel

/// Writes deltas. Members stand in the order `v`, `t`, `e`, `eid`, `op`, `p`, `new`, `r`, `set`,
/// `old`; of a batch in the order `from`, `dataSet`, `lineage`, `more`, `difference`, `behind`,
/// `goesOn`, `deltas`, `nextVersion`.
struct DeltaWriter {
    var json = JSONWriter()

    mutating func write(_ delta: Delta) {
        json.beginObject()
        json.name("v")
        json.integer(delta.version)
        json.name("t")
        json.integer(delta.seconds)
        json.name("e")
        json.text(delta.type)
        json.name("eid")
        json.text(delta.id)
        json.name("op")
        json.text(delta.operation.rawValue)
        if let payload = delta.payload {
            json.name("p")
            json.text(payload)
        }
        if delta.isNew {
            json.name("new")
            json.boolean(true)
        }
        if let revision = delta.recordRevision {
            json.name("r")
            json.integer(revision)
        }
        if let identifier = delta.identifier {
            json.name("set")
            json.text(identifier)
        }
        if let old = delta.oldID {
            json.name("old")
            json.integer(old)
        }
        json.endObject()
    }

    /// A batch up to and including `"deltas":[`.
    mutating func writeHead(_ batch: DeltaBatch) {
        json.beginObject()
        if let from = batch.from {
            json.name("from")
            json.integer(from)
        }
        if let dataSet = batch.dataSet {
            json.name("dataSet")
            json.text(dataSet)
        }
        if let lineage = batch.lineage {
            json.name("lineage")
            json.text(lineage)
        }
        if batch.more {
            json.name("more")
            json.boolean(true)
        }
        if batch.isDifference {
            json.name("difference")
            json.boolean(true)
        }
        if batch.isBehind {
            json.name("behind")
            json.boolean(true)
        }
        if let goesOn = batch.goesOn {
            json.name("goesOn")
            json.integer(goesOn)
        }
        json.name("deltas")
        json.beginArray()
    }
}

extension SyncCoder {
    /// A batch, encoded.
    public static func encode(_ batch: DeltaBatch) -> [UInt8] {
        var writer = DeltaWriter()
        writer.writeHead(batch)
        for delta in batch.deltas { writer.write(delta) }
        return writer.json.bytes + deltaTail(nextVersion: batch.nextVersion)
    }

    /// A batch up to and including `"deltas":[`. Behind it go encoded deltas with `,` between
    /// them, then `deltaTail`. The batch's own deltas are not written.
    public static func deltaHead(_ batch: DeltaBatch) -> [UInt8] {
        var writer = DeltaWriter()
        writer.writeHead(batch)
        return writer.json.bytes
    }

    /// What ends a batch that was put together from pieces.
    public static func deltaTail(nextVersion: Revision) -> [UInt8] {
        Array("],\"nextVersion\":\(nextVersion)}".utf8)
    }

    /// The deltas of one change set, encoded, with `,` between them: per type created and changed
    /// records in the set's order, then, over all types, the deleted ones.
    /// - Parameters:
    ///   - set: The change set as it was accepted.
    ///   - revision: The revision it made.
    ///   - seconds: When the server accepted it, since 1970.
    /// - Throws: `WireFault` when a value cannot be written.
    public static func encodeDeltas(
        of set: ChangeSet, revision: Revision, seconds: Int64
    ) throws(WireFault) -> [UInt8] {
        var writer = DeltaWriter()
        for delta in try Delta.list(of: set, revision: revision, seconds: seconds) {
            writer.write(delta)
        }
        return writer.json.bytes
    }
}

extension Delta {
    /// The deltas of one change set, in the order in which they apply.
    /// - Throws: `WireFault` when a value cannot be written.
    public static func list(
        of set: ChangeSet, revision: Revision, seconds: Int64
    ) throws(WireFault) -> [Delta] {
        var deltas: [Delta] = []
        for changes in set.types {
            let created = changes.update.isEmpty ? nil : Set(changes.create)
            let deleted = Set(changes.delete)
            for entry in changes.entries where !deleted.contains(entry.id) {
                let isNew = changes.create.isEmpty ? false : created?.contains(entry.id) ?? true
                var old: Int64?
                if case .integer(let number)? = entry.oldID { old = number }
                let payload = try SyncCoder.encode(entry.attributes)
                deltas.append(
                    Delta(
                        version: revision, seconds: seconds, type: changes.name,
                        id: entry.id.description, operation: .upsert,
                        payload: String(decoding: payload, as: UTF8.self), isNew: isNew,
                        recordRevision: entry.revision == revision ? nil : entry.revision,
                        identifier: set.identifier, oldID: old))
            }
        }
        for changes in set.types {
            for id in changes.delete {
                deltas.append(
                    Delta(
                        version: revision, seconds: seconds, type: changes.name,
                        id: id.description, operation: .delete, identifier: set.identifier))
            }
        }
        return deltas
    }
}
