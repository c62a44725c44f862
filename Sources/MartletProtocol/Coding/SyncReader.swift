internal import MartletModel

/// Reads the messages. `SyncCoder` documents what it accepts.
struct SyncReader {
    var json: JSONReader
    let limits: ReadingLimits
    /// The members of the last record.
    var template = RecordTemplate()
    /// The last delta, as a guess at the next one.
    var deltaTemplate = DeltaTemplate()
    /// The members of the current change set, of the current type in it, and of its `types`. They
    /// are kept here so that an answer of many small sets does not allocate them for each.
    var setMembers = MemberNames()
    var typeMembers = MemberNames()
    var typeNames = MemberNames()
    /// The number of records in the current change set.
    var recordCount = 0

    init(_ bytes: [UInt8], limits: ReadingLimits) {
        json = JSONReader(bytes)
        self.limits = limits
    }

    mutating func readRequest() throws(WireFault) -> SyncRequest {
        try checkSize()
        var request = SyncRequest(maxRevision: -1)
        var hasChangeSets = false
        try readMessage { (reader, name) throws(WireFault) in
            switch name {
            case "clientId": request.clientID = try reader.readName()
            case "protocol": request.protocolVersion = try reader.readCount()
            case "maxRevision": request.maxRevision = try reader.readCount()
            case "acknowledged": request.acknowledged = try reader.readCount()
            case "dataSet": request.dataSet = try reader.readName()
            case "lineage": request.lineage = try reader.readName(most: Limits.lineageBytes)
            case "partOf": request.partOf = try reader.readMark()
            case "goal": request.goal = try reader.readCount()
            case "schema": request.schema = try reader.readName()
            case "purged": request.purged = try reader.readReceipt()
            case "check": request.check = try reader.readCheckRequest()
            case "rules": request.rules = try reader.readName()
            case "rows": request.wantsRows = try reader.json.readBoolean()
            case "answerBytes": request.answerBytes = try reader.readCount()
            case "request": request.request = try reader.readName()
            case "changeSets":
                request.changeSets = try reader.readChangeSets()
                hasChangeSets = true
            default: try reader.json.skipValue()
            }
        }
        try checkRequired(maxRevision: request.maxRevision, hasChangeSets: hasChangeSets)
        return request
    }

    mutating func readAnswer() throws(WireFault) -> SyncAnswer {
        try checkSize()
        var answer = SyncAnswer(maxRevision: -1)
        var hasChangeSets = false
        try readMessage { (reader, name) throws(WireFault) in
            switch name {
            case "maxRevision": answer.maxRevision = try reader.readCount()
            case "more": answer.more = try reader.json.readBoolean()
            case "dataSet": answer.dataSet = try reader.readName()
            case "lineage": answer.lineage = try reader.readName(most: Limits.lineageBytes)
            case "schema": answer.schema = try reader.readName()
            case "clientId": answer.clientID = try reader.readName()
            case "from": answer.from = try reader.readCount()
            case "request": answer.request = try reader.readName()
            case "view": answer.view = try reader.readCount()
            case "rules": answer.rules = try reader.readRules()
            case "check": answer.check = try reader.readCheckAnswer()
            case "changeSets":
                answer.changeSets = try reader.readChangeSets()
                hasChangeSets = true
            default: try reader.json.skipValue()
            }
        }
        try checkRequired(maxRevision: answer.maxRevision, hasChangeSets: hasChangeSets)
        return answer
    }

    mutating func readSingleChangeSet() throws(WireFault) -> ChangeSet {
        try checkSize()
        let set = try readSoundChangeSet()
        try json.finish()
        return set
    }

    mutating func readAttributes() throws(WireFault) -> Attributes {
        try checkSize()
        var names: [String] = []
        var values: [Value] = []
        var known = MemberNames()
        try json.enter(.object)
        var more = try json.beginsElement(of: .object)
        while more {
            let start = json.position
            let name = try json.readMemberName()
            guard known.insert(name) else { throw JSONReader.duplicate(at: start) }
            names.append(name)
            values.append(try json.readValue())
            more = try json.hasNext(in: .object)
        }
        try json.finish()
        return Attributes(names: names, values: values)
    }

    // MARK: Parts

    func checkSize() throws(WireFault) {
        if json.bytes.count > Limits.inflatedBytes {
            throw WireFault("The document has more than \(Limits.inflatedBytes) bytes.", at: 0)
        }
    }

    mutating func readMessage(
        _ member: (inout SyncReader, String) throws(WireFault) -> Void
    ) throws(WireFault) {
        try readMembers(member)
        try json.finish()
    }

    /// Reads an object's members, each name once.
    mutating func readMembers(
        _ member: (inout SyncReader, String) throws(WireFault) -> Void
    ) throws(WireFault) {
        var names = MemberNames()
        try json.enter(.object)
        var more = try json.beginsElement(of: .object)
        while more {
            let start = json.position
            let name = try json.readMemberName()
            guard names.insert(name) else { throw JSONReader.duplicate(at: start) }
            try member(&self, name)
            more = try json.hasNext(in: .object)
        }
    }

    private func checkRequired(maxRevision: Revision, hasChangeSets: Bool) throws(WireFault) {
        if maxRevision < 0 {
            throw WireFault("maxRevision is missing; it is required.", at: json.position)
        }
        if !hasChangeSets {
            throw WireFault("changeSets is missing; it is required.", at: json.position)
        }
    }

    private mutating func readChangeSets() throws(WireFault) -> [ChangeSet] {
        var sets: [ChangeSet] = []
        try json.enter(.array)
        var more = try json.beginsElement(of: .array)
        while more {
            if sets.count >= limits.changeSets {
                throw WireFault(
                    "More than \(limits.changeSets) change sets in one request; "
                        + "send them in several.", at: json.position)
            }
            sets.append(try readChangeSet())
            more = try json.hasNext(in: .array)
        }
        return sets
    }

    /// Reads an integer of 0 or more.
    mutating func readCount() throws(WireFault) -> Int64 {
        _ = json.peek()
        let start = json.position
        let number = try json.readInteger()
        guard number >= 0 else {
            throw WireFault("Expected an integer of 0 or more.", at: start, shape: true)
        }
        return number
    }

    /// Reads a text of 1 to `most` bytes.
    mutating func readName(most: Int = Limits.nameBytes) throws(WireFault) -> String {
        _ = json.peek()
        let start = json.position
        let name = try json.readText()
        try check(name: name, at: start, most: most)
        return name
    }

    func check(
        name: String, at start: Int, most: Int = Limits.nameBytes
    ) throws(WireFault) {
        guard 1...most ~= name.utf8.count else {
            throw WireFault(
                "A name or identifier is empty or longer than \(most) bytes.",
                at: start, shape: true)
        }
    }
}
