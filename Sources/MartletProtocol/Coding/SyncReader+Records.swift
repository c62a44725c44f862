internal import MartletModel

extension SyncReader {
    /// Reads a type's member: the three lists and the attributes.
    mutating func readTypeChanges(_ name: String) throws(WireFault) -> TypeChanges {
        _ = json.peek()
        let start = json.position
        var changes = TypeChanges(name: name)
        typeMembers.forget()
        var listCount = 0
        var deferred: (position: Int, depth: Int)?
        var index: RecordIndex?
        try json.enter(.object)
        var more = try json.beginsElement(of: .object)
        while more {
            let nameStart = json.position
            let name = try json.readMemberName()
            guard typeMembers.insert(name) else { throw JSONReader.duplicate(at: nameStart) }
            switch name {
            case "create": changes.create = try readIDs(&listCount)
            case "update": changes.update = try readIDs(&listCount)
            case "delete": changes.delete = try readIDs(&listCount)
            case "hidden": changes.hidden = try readHidden()
            case "attributes" where listCount == 3:
                index = try readEntries(of: &changes, at: start)
            case "attributes":
                // A list may still follow, so the entries are read when all lists are known.
                _ = json.peek()
                deferred = (json.position, json.depth)
                try json.skipValue()
            default:
                throw WireFault(
                    """
                    A type has a member that is none of create, update, delete, hidden, attributes.
                    """,
                    at: nameStart, shape: true)
            }
            more = try json.hasNext(in: .object)
        }
        if let deferred {
            let (end, depth) = (json.position, json.depth)
            (json.position, json.depth) = deferred
            index = try readEntries(of: &changes, at: start)
            (json.position, json.depth) = (end, depth)
        }
        if index == nil { index = try checkedIndex(of: changes, at: start) }
        guard index?.isComplete == true else {
            throw WireFault(
                "A created or updated record has no entry in `attributes`.", at: start,
                shape: true)
        }
        guard changes.hidden.isEmpty || Set(changes.hidden).isSubset(of: changes.delete) else {
            throw WireFault(
                "`hidden` has a record that is not in `delete`.", at: start, shape: true)
        }
        return changes
    }

    /// Reads the ids of deleted records that are hidden. They are counted as deleted ones.
    private mutating func readHidden() throws(WireFault) -> [RecordID] {
        let counted = recordCount
        defer { recordCount = counted }
        var lists = 0
        return try readIDs(&lists)
    }

    private mutating func readIDs(_ listCount: inout Int) throws(WireFault) -> [RecordID] {
        listCount += 1
        var ids: [RecordID] = []
        try json.enter(.array)
        var more = try json.beginsElement(of: .array)
        while more {
            recordCount += 1
            if recordCount > limits.records {
                throw WireFault(
                    "More than \(limits.records) records in one change set.",
                    at: json.position, shape: true)
            }
            ids.append(try readID())
            more = try json.hasNext(in: .array)
        }
        return ids
    }

    private mutating func readID() throws(WireFault) -> RecordID {
        _ = json.peek()
        let start = json.position
        if start < json.bytes.count, json.bytes[start] == UInt8(ascii: "\"") {
            return .text(try json.readText())
        }
        let number = try json.readInteger()
        guard number != 0 else {
            throw WireFault("Zero is no record's id.", at: start, shape: true)
        }
        return .integer(number)
    }

    private func checkedIndex(
        of changes: TypeChanges, at start: Int
    ) throws(WireFault) -> RecordIndex {
        var index = RecordIndex(changes)
        guard index.areUnique() else {
            throw WireFault(
                "A record stands in two of the lists, or twice in one.", at: start, shape: true)
        }
        return index
    }

    // MARK: Entries

    private mutating func readEntries(
        of changes: inout TypeChanges, at start: Int
    ) throws(WireFault) -> RecordIndex {
        var index = try checkedIndex(of: changes, at: start)
        var entries: [RecordEntry] = []
        entries.reserveCapacity(changes.create.count + changes.update.count)
        try json.enter(.object)
        var more = try json.beginsElement(of: .object)
        while more {
            let nameStart = json.position
            let token = try json.scanMemberName()
            switch index.find(token, in: json) {
            case .found(let id): entries.append(try readEntry(id))
            case .again: throw JSONReader.duplicate(at: nameStart)
            case .unknown:
                throw WireFault(
                    "`attributes` has a record that is in none of create, update, delete.",
                    at: nameStart, shape: true)
            }
            more = try json.hasNext(in: .object)
        }
        changes.entries = entries
        return index
    }

    /// Reads a record's attributes as long as its members are those of the record before.
    private mutating func readEntry(_ id: RecordID) throws(WireFault) -> RecordEntry {
        var entry = RecordEntry(id: id)
        var values: [Value] = []
        values.reserveCapacity(template.names.count)
        var matched = 0
        try json.enter(.object)
        var more = try json.beginsElement(of: .object)
        while more {
            guard matched < template.members.count,
                json.passRepetition(of: template.members[matched].token)
            else {
                return try readEntryUnlikeTemplate(entry, values, matched)
            }
            try json.passColon()
            try readMember(template.members[matched].role, of: &entry, values: &values)
            matched += 1
            more = try json.hasNext(in: .object)
        }
        if matched < template.members.count { template = template.prefix(matched) }
        entry.attributes = Attributes(names: template.names, values: values)
        return entry
    }

    /// Continues from the first member that differs; the record becomes the template.
    private mutating func readEntryUnlikeTemplate(
        _ started: RecordEntry, _ startedValues: [Value], _ matched: Int
    ) throws(WireFault) -> RecordEntry {
        var entry = started
        var values = startedValues
        var own = template.prefix(matched)
        var known = MemberNames(own.members.map { json.text(of: $0.token) })
        var more = true
        while more {
            let nameStart = json.position
            let token = try json.scanMemberName()
            let name = json.text(of: token)
            guard known.insert(name) else { throw JSONReader.duplicate(at: nameStart) }
            let role = try role(of: name, at: nameStart)
            own.members.append(RecordTemplate.Member(token: token, role: role))
            if role == .attribute { own.names.append(name) }
            try readMember(role, of: &entry, values: &values)
            more = try json.hasNext(in: .object)
        }
        template = own
        entry.attributes = Attributes(names: own.names, values: values)
        return entry
    }

    private func role(of name: String, at start: Int) throws(WireFault) -> RecordTemplate.Role {
        switch name {
        case "revision": return .revision
        case "__oldId__": return .oldID
        default:
            guard !ReservedWords.attributes.contains(name) else {
                throw WireFault(
                    "An attribute has a name the wire does not allow.", at: start, shape: true)
            }
            try check(name: name, at: start)
            return .attribute
        }
    }

    private mutating func readMember(
        _ role: RecordTemplate.Role, of entry: inout RecordEntry, values: inout [Value]
    ) throws(WireFault) {
        switch role {
        case .attribute:
            let start = json.position
            let value = try json.readValue()
            if json.position - start > limits.textBytes, case .text(let text) = value,
                text.utf8.count > limits.textBytes
            {
                throw WireFault(
                    "A text has more than \(limits.textBytes) bytes.", at: start, shape: true)
            }
            values.append(value)
        case .revision: entry.revision = try readCount()
        case .oldID: entry.oldID = try readID()
        }
    }
}
