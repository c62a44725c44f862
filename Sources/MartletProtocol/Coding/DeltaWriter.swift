package import MartletModel

/// Writes deltas. The order of a delta's members is `v`, `t`, `e`, `eid`, `op`, `p`, `new`, `r`,
/// `set`, `old`; that of a batch's members is `from`, `dataSet`, `lineage`, `more`, `difference`,
/// `behind`, `goesOn`, `deltas`, `nextVersion`.
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

    /// Writes a batch up to and including `"deltas":[`.
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
    /// Encodes a batch.
    /// - Complexity: O(*n*) in the bytes of its deltas.
    package static func encode(_ batch: DeltaBatch) -> [UInt8] {
        var writer = DeltaWriter()
        writer.writeHead(batch)
        for delta in batch.deltas { writer.write(delta) }
        return writer.json.bytes + deltaTail(nextVersion: batch.nextVersion)
    }

    /// Encodes a batch up to and including `"deltas":[`. The caller appends encoded deltas with `,`
    /// between them, then `deltaTail`. The batch's own deltas are not written.
    package static func deltaHead(_ batch: DeltaBatch) -> [UInt8] {
        var writer = DeltaWriter()
        writer.writeHead(batch)
        return writer.json.bytes
    }

    /// Encodes the end of a batch that is put together from pieces.
    package static func deltaTail(nextVersion: Revision) -> [UInt8] {
        Array("],\"nextVersion\":\(nextVersion)}".utf8)
    }

    /// Encodes the deltas of one change set, with `,` between them. First come, for each type, the
    /// created and changed records in the set's order, then the deleted records of all types.
    /// - Parameters:
    ///   - set: The change set as it was accepted.
    ///   - revision: The revision that it made.
    ///   - seconds: When the server accepted it, in seconds since 1970.
    /// - Throws: `WireFault` if a value cannot be written.
    package static func encodeDeltas(
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
    /// Returns the deltas of one change set, in the order in which they apply.
    /// - Throws: `WireFault` if a value cannot be written.
    package static func list(
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
