internal import MartletModel

/// Writes the messages. `SyncCoder` documents the order of the members.
struct SyncWriter {
    var json = JSONWriter()
    /// The list of names whose encoded members `keys` holds. Records of one type mostly share one.
    private var names: [String] = []
    /// The encoded form of each name: `,"name":`.
    private var keys: [[UInt8]] = []
    /// The encoded attributes of the next entries; nil if the entries have their attributes.
    var encoded: ArraySlice<[UInt8]>?

    mutating func writeHead(_ request: SyncRequest) {
        json.beginObject()
        json.member("clientId", request.clientID)
        json.member("protocol", request.protocolVersion)
        json.member("maxRevision", request.maxRevision)
        json.member("acknowledged", request.acknowledged)
        json.member("dataSet", request.dataSet)
        json.member("lineage", request.lineage)
        if let mark = request.partOf {
            json.name("partOf")
            json.beginObject()
            json.member("revision", mark.revision)
            json.member("lineage", mark.lineage)
            json.endObject()
        }
        json.member("goal", request.goal)
        json.member("schema", request.schema)
        json.member("rules", request.rules)
        json.member("rows", request.wantsRows ? true : nil)
        json.member("answerBytes", request.answerBytes)
        json.member("request", request.request)
        if let purged = request.purged {
            json.name("purged")
            write(purged)
        }
        if let check = request.check {
            json.name("check")
            write(check)
        }
        json.name("changeSets")
        json.beginArray()
    }

    mutating func writeHead(_ answer: SyncAnswer) throws(WireFault) {
        json.beginObject()
        json.member("maxRevision", answer.maxRevision)
        json.member("more", answer.more ? true : nil)
        json.member("dataSet", answer.dataSet)
        json.member("lineage", answer.lineage)
        json.member("schema", answer.schema)
        json.member("clientId", answer.clientID)
        json.member("from", answer.from)
        json.member("request", answer.request)
        json.member("view", answer.view)
        if let rules = answer.rules {
            json.name("rules")
            write(rules)
        }
        if let check = answer.check {
            json.name("check")
            try write(check)
        }
        json.name("changeSets")
        json.beginArray()
    }

    mutating func finish(_ changeSets: [ChangeSet]) throws(WireFault) -> [UInt8] {
        for changeSet in changeSets { try write(changeSet) }
        json.endArray()
        json.endObject()
        return json.bytes
    }

    mutating func write(_ set: ChangeSet) throws(WireFault) {
        json.beginObject()
        json.member("identifier", set.identifier)
        json.member("sequence", set.sequence)
        json.member("seen", set.seen)
        json.member("dependencyIdentifier", set.dependencyIdentifier)
        json.member("timestamp", set.timestamp)
        json.member("revision", set.revision)
        json.member("conflict", set.conflict)
        json.member("reason", set.reason?.rawValue)
        json.member("message", set.message)
        json.member("retryAfter", set.retryAfter)
        json.member("difference", set.isDifference ? true : nil)
        json.member("part", set.isTruthCut ? true : nil)
        json.name("types")
        json.beginArray()
        for type in set.types { json.text(type.name) }
        json.endArray()
        for type in set.types {
            json.name(type.name)
            try write(type)
        }
        json.endObject()
    }

    private mutating func write(_ type: TypeChanges) throws(WireFault) {
        json.beginObject()
        write("create", type.create)
        write("update", type.update)
        write("delete", type.delete)
        if !type.hidden.isEmpty { write("hidden", type.hidden) }
        json.name("attributes")
        json.beginObject()
        for entry in type.entries { try write(entry) }
        json.endObject()
        json.endObject()
    }

    private mutating func write(_ name: String, _ ids: [RecordID]) {
        json.name(name)
        json.beginArray()
        for id in ids {
            switch id {
            case .integer(let number): json.integer(number)
            case .text(let text): json.text(text)
            }
        }
        json.endArray()
    }

    private mutating func write(_ entry: RecordEntry) throws(WireFault) {
        json.separate()
        switch entry.id {
        case .integer(let number):
            json.bytes.append(UInt8(ascii: "\""))
            json.appendInteger(number)
            json.bytes.append(UInt8(ascii: "\""))
        case .text(let text): json.appendQuoted(text)
        }
        json.bytes.append(UInt8(ascii: ":"))
        json.needsComma = false
        json.beginObject()
        switch entry.oldID {
        case .integer(let number): json.member("__oldId__", number)
        case .text(let text): json.member("__oldId__", text)
        case nil: break
        }
        json.member("revision", entry.revision)
        if let object = encoded?.popFirst() {
            json.members(of: object)
        } else if !entry.attributes.isEmpty {
            try write(entry.attributes)
        }
        json.endObject()
    }

    private mutating func write(_ attributes: Attributes) throws(WireFault) {
        if attributes.names != names { try prepareKeys(attributes.names) }
        var isFirst = !json.needsComma
        for (index, value) in attributes.values.enumerated() {
            if isFirst {
                json.name(names[index])
                isFirst = false
            } else {
                json.bytes.append(contentsOf: keys[index])
            }
            try json.append(value)
        }
        json.needsComma = true
    }

    private mutating func prepareKeys(_ newNames: [String]) throws(WireFault) {
        for name in newNames where ReservedWords.attributes.contains(name) {
            throw WireFault(
                "An attribute has a name the wire uses itself; rename it.", at: json.bytes.count)
        }
        names = newNames
        keys = newNames.map { name in
            var key = JSONWriter()
            key.needsComma = true
            key.name(name)
            return key.bytes
        }
    }
}
