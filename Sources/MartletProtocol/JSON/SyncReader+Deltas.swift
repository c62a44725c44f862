extension SyncCoder {
    /// Reads a batch of deltas. Strict as all reading of the wire (see `JSONReader`); unknown
    /// members are passed over.
    /// - Throws: `WireFault` for what is not JSON, lacks a member, or contradicts itself: a delta
    ///   outside the batch's versions, versions that go down, an upsert without `p`.
    public static func decodeDeltaBatch(_ bytes: [UInt8]) throws(WireFault) -> DeltaBatch {
        var reader = SyncReader(bytes, limits: .none)
        return try reader.readDeltaBatch()
    }
}

extension SyncReader {
    mutating func readDeltaBatch() throws(WireFault) -> DeltaBatch {
        try checkSize()
        var batch = DeltaBatch(deltas: [], nextVersion: -1)
        var hasDeltas = false
        try readMessage { (reader, name) throws(WireFault) in
            switch name {
            case "from": batch.from = try reader.readCount()
            case "dataSet": batch.dataSet = try reader.readName()
            case "lineage": batch.lineage = try reader.readName()
            case "more": batch.more = try reader.json.readBoolean()
            case "difference": batch.isDifference = try reader.json.readBoolean()
            case "behind": batch.isBehind = try reader.json.readBoolean()
            case "nextVersion": batch.nextVersion = try reader.readCount()
            case "deltas":
                batch.deltas = try reader.readDeltas()
                hasDeltas = true
            default: try reader.json.skipValue()
            }
        }
        guard batch.nextVersion >= 0, hasDeltas else {
            throw WireFault(
                "deltas or nextVersion is missing; both are required.", at: json.position)
        }
        try check(batch)
        return batch
    }

    private mutating func readDeltas() throws(WireFault) -> [Delta] {
        var deltas: [Delta] = []
        try json.enter(.array)
        var more = try json.beginsElement(of: .array)
        while more {
            deltas.append(try readDelta())
            more = try json.hasNext(in: .array)
        }
        return deltas
    }

    private mutating func readDelta() throws(WireFault) -> Delta {
        var delta = Delta(version: -1, seconds: -1, type: "", id: "", operation: .upsert)
        var hasOperation = false
        let start = json.position
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "v": delta.version = try reader.readCount()
            case "t": delta.seconds = try reader.json.readInteger()
            case "e": delta.type = try reader.readName()
            // A key of text may be longer than a name.
            case "eid": delta.id = try reader.json.readText()
            case "op":
                let position = reader.json.position
                guard let operation = Delta.Operation(rawValue: try reader.json.readText()) else {
                    throw WireFault("op is upsert or delete.", at: position, shape: true)
                }
                delta.operation = operation
                hasOperation = true
            case "p": delta.payload = try reader.readOptionalText()
            case "new": delta.isNew = try reader.json.readBoolean()
            case "r": delta.recordRevision = try reader.readCount()
            case "set": delta.identifier = try reader.readName()
            case "old": delta.oldID = try reader.json.readInteger()
            default: try reader.json.skipValue()
            }
        }
        guard delta.version >= 0, hasOperation, !delta.type.isEmpty, !delta.id.isEmpty else {
            throw WireFault("A delta lacks v, e, eid or op.", at: start, shape: true)
        }
        guard delta.operation == .delete || delta.payload != nil else {
            throw WireFault("An upsert lacks p.", at: start, shape: true)
        }
        return delta
    }

    private mutating func readOptionalText() throws(WireFault) -> String? {
        if try json.readNull() { return nil }
        return try json.readText()
    }

    private func check(_ batch: DeltaBatch) throws(WireFault) {
        if let from = batch.from, from > batch.nextVersion {
            throw WireFault("A batch begins after its end.", at: 0, shape: true)
        }
        var last: Revision = 0
        for delta in batch.deltas {
            guard delta.version >= last, delta.version > batch.from ?? -1,
                delta.version <= batch.nextVersion
            else {
                throw WireFault(
                    "A delta's version goes down, or lies outside its batch.", at: 0, shape: true)
            }
            last = delta.version
        }
    }
}
