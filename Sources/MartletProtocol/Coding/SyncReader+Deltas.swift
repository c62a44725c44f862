internal import MartletModel

extension SyncCoder {
    /// Reads a batch of deltas. It is as strict as all reading of the wire (see `JSONReader`);
    /// unknown members are skipped.
    /// - Throws: `WireFault` if the bytes are not JSON, a member is missing, or the batch
    ///   contradicts itself: a delta outside the batch's versions, versions that decrease, an
    ///   upsert without `p`.
    package static func decodeDeltaBatch(_ bytes: [UInt8]) throws(WireFault) -> DeltaBatch {
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
            case "lineage": batch.lineage = try reader.readName(most: Limits.lineageBytes)
            case "more": batch.more = try reader.json.readBoolean()
            case "difference": batch.isDifference = try reader.json.readBoolean()
            case "behind": batch.isBehind = try reader.json.readBoolean()
            case "goesOn": batch.goesOn = try reader.readCount()
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

    /// Reads a delta as long as its members are those of the delta before.
    private mutating func readDelta() throws(WireFault) -> Delta {
        var delta = Delta(version: -1, seconds: -1, type: "", id: "", operation: .upsert)
        var hasOperation = false
        let start = json.position
        var matched = 0
        try json.enter(.object)
        var more = try json.beginsElement(of: .object)
        while more, matched < deltaTemplate.members.count,
            json.passRepetition(of: deltaTemplate.members[matched].token)
        {
            try json.passColon()
            try readMember(deltaTemplate.members[matched].role, of: &delta, &hasOperation)
            matched += 1
            more = try json.hasNext(in: .object)
        }
        if more { try readMembersUnlikeTemplate(matched, of: &delta, &hasOperation) }
        guard delta.version >= 0, hasOperation, !delta.type.isEmpty, !delta.id.isEmpty else {
            throw WireFault("A delta lacks v, e, eid or op.", at: start, shape: true)
        }
        guard delta.operation == .delete || delta.body != nil else {
            throw WireFault("An upsert lacks p.", at: start, shape: true)
        }
        return delta
    }

    /// Continues from the first member that differs; the delta becomes the template.
    private mutating func readMembersUnlikeTemplate(
        _ matched: Int, of delta: inout Delta, _ hasOperation: inout Bool
    ) throws(WireFault) {
        var members = Array(deltaTemplate.members.prefix(matched))
        var known = MemberNames(members.map { json.text(of: $0.token) })
        var more = true
        while more {
            let start = json.position
            let token = try json.scanMemberName()
            let name = json.text(of: token)
            guard known.insert(name) else { throw JSONReader.duplicate(at: start) }
            let member = DeltaTemplate.Member(token: token, role: .init(name))
            members.append(member)
            try readMember(member.role, of: &delta, &hasOperation)
            more = try json.hasNext(in: .object)
        }
        deltaTemplate.members = members
    }

    private mutating func readMember(
        _ role: DeltaTemplate.Role, of delta: inout Delta, _ hasOperation: inout Bool
    ) throws(WireFault) {
        switch role {
        case .version: delta.version = try readCount()
        case .seconds: delta.seconds = try json.readInteger()
        case .type: delta.type = try readType()
        // A key of text may be longer than a name.
        case .id: delta.id = try json.readText()
        case .operation:
            let position = json.position
            guard let operation = Delta.Operation(rawValue: try json.readText()) else {
                throw WireFault("op is upsert or delete.", at: position, shape: true)
            }
            delta.operation = operation
            hasOperation = true
        case .payload: delta.body = try readPayload()
        case .isNew: delta.isNew = try json.readBoolean()
        case .recordRevision: delta.recordRevision = try readCount()
        case .identifier: delta.identifier = try readName()
        case .oldID: delta.oldID = try json.readInteger()
        case .other: try json.skipValue()
        }
    }

    /// Reads the entity type, which is mostly that of the delta before.
    private mutating func readType() throws(WireFault) -> String {
        _ = json.peek()
        if let last = deltaTemplate.type, json.passRepetition(of: last.token) { return last.name }
        let start = json.position
        let name = try readName()
        // Whether it contains escapes does not matter when bytes are compared.
        let token = TextToken(start: start + 1, end: json.position - 1, isEscaped: false)
        deltaTemplate.type = (token, name)
        return name
    }

    /// Reads the payload, at once if it has the usual form. If it has another form or is not sound,
    /// the receiver of the delta reads it, because one bad record does not make a bad batch.
    private mutating func readPayload() throws(WireFault) -> DeltaPayload? {
        if try json.readNull() { return nil }
        _ = json.peek()
        let start = json.position
        if let attributes = json.readObjectInText(like: &deltaTemplate.attributes) {
            let token = TextToken(start: start + 1, end: json.position - 1, isEscaped: true)
            return DeltaPayload(attributes, at: token, in: json.bytes)
        }
        json.position = start
        return DeltaPayload(try json.readText())
    }

    private func check(_ batch: DeltaBatch) throws(WireFault) {
        if let from = batch.from, from > batch.nextVersion {
            throw WireFault("A batch begins after its end.", at: 0, shape: true)
        }
        if let goesOn = batch.goesOn, goesOn < batch.nextVersion {
            throw WireFault("A batch goes on before its end.", at: 0, shape: true)
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
