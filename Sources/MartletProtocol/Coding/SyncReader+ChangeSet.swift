internal import MartletModel

extension SyncReader {
    /// Reads a change set. A set with a wrong shape gets a `defect`.
    mutating func readChangeSet() throws(WireFault) -> ChangeSet {
        _ = json.peek()
        let start = json.position
        let depth = json.depth
        do {
            return try readSoundChangeSet()
        } catch {
            guard error.concernsShape else { throw error }
            json.position = start
            json.depth = depth
            return try readDefectiveChangeSet(error)
        }
    }

    /// Reads a change set; a wrong shape throws an error.
    mutating func readSoundChangeSet() throws(WireFault) -> ChangeSet {
        _ = json.peek()
        let start = json.position
        var set = ChangeSet()
        var members = TypeMembers()
        setMembers.forget()
        recordCount = 0
        try json.enter(.object)
        var more = try json.beginsElement(of: .object)
        while more {
            let nameStart = json.position
            let name = try json.readMemberName()
            guard setMembers.insert(name) else { throw JSONReader.duplicate(at: nameStart) }
            if name == "types" {
                try readTypeNames(into: &members)
            } else if try !readMember(name, of: &set) {
                try readTypeMember(name, at: nameStart, into: &members)
            }
            more = try json.hasNext(in: .object)
        }
        set.source = SourceRange(start: start, end: json.position)
        try readDeferred(&members)
        set.types = try changes(of: members, at: start)
        if set.source.end - start > limits.changeSetBytes {
            throw WireFault(
                "The change set has more than \(limits.changeSetBytes) bytes.", at: start,
                shape: true)
        }
        return set
    }

    /// Skips a change set with a wrong shape, and keeps the members that identify it. It must still
    /// be JSON.
    private mutating func readDefectiveChangeSet(
        _ fault: WireFault
    ) throws(WireFault) -> ChangeSet {
        let start = json.position
        var set = ChangeSet()
        set.defect = "\(fault.message) (at byte \(fault.offset - start) of the change set)"
        if json.peek() == UInt8(ascii: "{") {
            try json.readObject { (json, name) throws(WireFault) in
                let byte = json.peek()
                if name == "identifier", byte == UInt8(ascii: "\"") {
                    let identifier = try json.readText()
                    let isSound = 1...Limits.nameBytes ~= identifier.utf8.count
                    set.identifier = isSound ? identifier : nil
                } else if name == "sequence", UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte {
                    set.sequence = json.skipCount(try json.scanNumber())
                } else {
                    try json.skipValue()
                }
            }
        } else {
            try json.skipValue()
        }
        set.source = SourceRange(start: start, end: json.position)
        return set
    }

    /// Reads a member that every change set may have. Returns false for any other, without reading
    /// it.
    private mutating func readMember(
        _ name: String, of set: inout ChangeSet
    ) throws(WireFault) -> Bool {
        switch name {
        case "identifier": set.identifier = try readName()
        case "sequence": set.sequence = try readCount()
        case "seen": set.seen = try readCount()
        case "dependencyIdentifier": set.dependencyIdentifier = try readName()
        case "timestamp": set.timestamp = try readName()
        case "revision": set.revision = try readCount()
        case "conflict": set.conflict = try json.readBoolean()
        case "reason": set.reason = RefusalReason(rawValue: try readName())
        case "message": set.message = try json.readText()
        case "retryAfter": set.retryAfter = try readCount()
        case "difference": set.isDifference = try json.readBoolean()
        case "part": set.isTruthCut = try json.readBoolean()
        default: return false
        }
        return true
    }

    // MARK: Types

    private mutating func readTypeNames(into members: inout TypeMembers) throws(WireFault) {
        typeNames.forget()
        try json.enter(.array)
        var more = try json.beginsElement(of: .array)
        while more {
            _ = json.peek()
            let start = json.position
            let name = try readName()
            guard !ReservedWords.types.contains(name) else {
                throw WireFault(
                    "A type has a name the wire uses itself.", at: start, shape: true)
            }
            guard typeNames.insert(name) else {
                throw WireFault("`types` names a type twice.", at: start, shape: true)
            }
            members.names.append(name)
            more = try json.hasNext(in: .array)
        }
        members.changes = Array(repeating: nil, count: members.names.count)
        members.areNamed = true
    }

    /// Reads a member that is no word of the wire: a type's changes, if `types` names the type.
    /// Before `types` was read, the member is skipped and its position remembered.
    private mutating func readTypeMember(
        _ name: String, at start: Int, into members: inout TypeMembers
    ) throws(WireFault) {
        guard members.areNamed else {
            _ = json.peek()
            members.deferred.append((name: name, position: json.position, depth: json.depth))
            return try json.skipValue()
        }
        if let index = members.index(of: name) {
            members.changes[index] = try readTypeChanges(name)
            return
        }
        switch json.peek() {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            throw WireFault(
                "A member of the change set is neither known nor listed in `types`.", at: start,
                shape: true)
        default: try json.skipValue()
        }
    }

    private mutating func readDeferred(_ members: inout TypeMembers) throws(WireFault) {
        guard !members.deferred.isEmpty else { return }
        let (end, depth) = (json.position, json.depth)
        members.areNamed = true
        for member in members.deferred {
            json.position = member.position
            json.depth = member.depth
            try readTypeMember(member.name, at: member.position, into: &members)
        }
        json.position = end
        json.depth = depth
    }

    private func changes(
        of members: TypeMembers, at start: Int
    ) throws(WireFault) -> [TypeChanges] {
        var result: [TypeChanges] = []
        result.reserveCapacity(members.changes.count)
        for changes in members.changes {
            guard let changes else {
                throw WireFault(
                    "`types` names a type that has no member in the change set.", at: start,
                    shape: true)
            }
            result.append(changes)
        }
        return result
    }
}

/// The types of one change set while it is read.
private struct TypeMembers {
    /// The names in `types`.
    var names: [String] = []
    /// Whether `types` was read (or there is none).
    var areNamed = false
    /// The changes in the order of `names`; nil until the type's member was read.
    var changes: [TypeChanges?] = []
    /// The members that came before `types`.
    var deferred: [(name: String, position: Int, depth: Int)] = []

    private var next = 0
    private var positions: [String: Int] = [:]

    /// Returns the position of a type in `types`. Members mostly come in that order, so the next
    /// one is tried first.
    mutating func index(of name: String) -> Int? {
        if next < names.count, names[next] == name {
            next += 1
            return next - 1
        }
        if positions.isEmpty {
            for (index, name) in names.enumerated() { positions[name] = index }
        }
        guard let index = positions[name] else { return nil }
        next = index + 1
        return index
    }
}

extension JSONReader {
    /// Returns the number as an integer of 0 or more; nil if it is not one.
    fileprivate func skipCount(_ token: NumberToken) -> Int64? {
        guard token.isInteger, let digits = token.digits else { return nil }
        return Int64(exactly: digits)
    }
}
