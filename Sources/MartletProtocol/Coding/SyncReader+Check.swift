internal import MartletModel

extension SyncReader {
    /// Reads the `check` of a request. It refuses ranges that overlap, are in no order, or have
    /// bounds of different kinds, so that one request costs at most one look at each record.
    mutating func readCheckRequest() throws(WireFault) -> CheckRequest {
        var check = CheckRequest(revision: -1)
        var hasTypes = false
        var names: Set<String> = []
        var rangeCount = 0
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "revision": check.revision = try reader.readCount()
            case "types":
                hasTypes = true
                try reader.readElements { (reader) throws(WireFault) in
                    let start = reader.json.position
                    let type = try reader.readCheckedType(&rangeCount)
                    guard names.insert(type.name).inserted else {
                        throw WireFault("A type is to be checked twice.", at: start)
                    }
                    check.types.append(type)
                }
            default: try reader.json.skipValue()
            }
        }
        guard check.revision >= 0, hasTypes else {
            throw WireFault("A check needs `revision` and `types`.", at: json.position)
        }
        return check
    }

    private mutating func readCheckedType(
        _ rangeCount: inout Int
    ) throws(WireFault) -> CheckedType {
        var type = CheckedType(name: "", attributes: [])
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "type": type.name = try reader.readName()
            case "attributes":
                try reader.readMembers { (reader, name) throws(WireFault) in
                    try reader.check(name: name, at: reader.json.position)
                    let kind = try reader.readName()
                    type.attributes.append(CheckedAttribute(name: name, kind: kind))
                }
            case "ranges":
                try reader.readElements { (reader) throws(WireFault) in
                    let start = reader.json.position
                    rangeCount += 1
                    guard rangeCount <= Limits.checkRanges else {
                        throw WireFault(
                            "More than \(Limits.checkRanges) ranges in one check; ask in several.",
                            at: start)
                    }
                    let range = try reader.readCheckedRange()
                    try range.check(after: type.ranges.last, at: start)
                    type.ranges.append(range)
                }
            default: try reader.json.skipValue()
            }
        }
        guard !type.name.isEmpty else {
            throw WireFault("A check does not name its type.", at: json.position)
        }
        return type
    }

    private mutating func readCheckedRange() throws(WireFault) -> CheckedRange {
        try json.enter(.array)
        guard try json.beginsElement(of: .array) else { throw json.unexpected() }
        let from = try readOptionalID()
        try expectNext()
        let below = try readOptionalID()
        try expectNext()
        let hash = try readHash()
        return CheckedRange(from: from, below: below, hash: hash)
    }

    mutating func readCheckAnswer() throws(WireFault) -> CheckAnswer {
        var check = CheckAnswer(revision: -1)
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "revision": check.revision = try reader.readCount()
            case "behind": check.isBehind = try reader.json.readBoolean()
            case "types":
                try reader.readElements { (reader) throws(WireFault) in
                    check.types.append(try reader.readTypeVerdict())
                }
            default: try reader.json.skipValue()
            }
        }
        guard check.revision >= 0 else {
            throw WireFault("A check is answered without its revision.", at: json.position)
        }
        return check
    }

    private mutating func readTypeVerdict() throws(WireFault) -> TypeVerdict {
        var type = TypeVerdict(name: "")
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "type": type.name = try reader.readName()
            case "unknown": type.isUnknown = try reader.json.readBoolean()
            case "unknownAttributes":
                try reader.readElements { (reader) throws(WireFault) in
                    type.unknownAttributes.append(try reader.readName())
                }
            case "ranges":
                try reader.readElements { (reader) throws(WireFault) in
                    type.ranges.append(try reader.readRangeVerdict())
                }
            default: try reader.json.skipValue()
            }
        }
        guard !type.name.isEmpty else {
            throw WireFault("A check is answered without its type.", at: json.position)
        }
        return type
    }

    private mutating func readRangeVerdict() throws(WireFault) -> RangeVerdict {
        if json.nextKind() == .boolean {
            guard try json.readBoolean() else { throw json.shape("Expected true.") }
            return .equal
        }
        var hash: RangeHash?
        var rows: [RecordEntry]?
        var next: RecordID?
        var without: [RecordID] = []
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "hash":
                try reader.json.enter(.array)
                guard try reader.json.beginsElement(of: .array) else {
                    throw reader.json.unexpected()
                }
                hash = try reader.readHash()
            case "rows":
                var list: [RecordEntry] = []
                try reader.readElements { (reader) throws(WireFault) in
                    list.append(try reader.readRow())
                }
                rows = list
            case "next": next = try reader.readKey()
            case "without":
                try reader.readElements { (reader) throws(WireFault) in
                    without.append(try reader.readKey())
                }
            default: try reader.json.skipValue()
            }
        }
        if let rows { return .rows(CheckedRows(rows: rows, next: next, without: without)) }
        guard let hash else { throw json.shape("Expected `hash` or `rows`.") }
        return .hash(hash, without: without)
    }

    /// Reads a row: `[key, revision, {attributes}]`.
    private mutating func readRow() throws(WireFault) -> RecordEntry {
        try json.enter(.array)
        guard try json.beginsElement(of: .array) else { throw json.unexpected() }
        var row = RecordEntry(id: try readKey())
        try expectNext()
        row.revision = try readCount()
        try expectNext()
        var names: [String] = []
        var values: [Value] = []
        try readMembers { (reader, name) throws(WireFault) in
            names.append(name)
            values.append(try reader.json.readValue())
        }
        row.attributes = Attributes(names: names, values: values)
        try expectEnd()
        return row
    }

    mutating func readMark() throws(WireFault) -> HistoryMark {
        _ = json.peek()
        let start = json.position
        var (revision, lineage): (Revision?, String?) = (nil, nil)
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "revision": revision = try reader.readCount()
            case "lineage": lineage = try reader.readName(most: Limits.lineageBytes)
            default: try reader.json.skipValue()
            }
        }
        guard let revision, let lineage else {
            throw WireFault("`partOf` lacks one of revision and lineage.", at: start, shape: true)
        }
        return HistoryMark(revision: revision, lineage: lineage)
    }

    mutating func readReceipt() throws(WireFault) -> PurgeReceipt {
        _ = json.peek()
        let start = json.position
        var (view, revision): (Int64?, Revision?) = (nil, nil)
        var removed: RangeHash?
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "view": view = try reader.readCount()
            case "revision": revision = try reader.readCount()
            case "removed":
                try reader.json.enter(.array)
                guard try reader.json.beginsElement(of: .array) else {
                    throw reader.json.unexpected()
                }
                removed = try reader.readHash()
            default: try reader.json.skipValue()
            }
        }
        guard let view, let revision, let removed else {
            throw WireFault(
                "`purged` lacks one of view, revision and removed.", at: start, shape: true)
        }
        return PurgeReceipt(view: view, revision: revision, removed: removed)
    }

    // MARK: Parts

    /// Reads the last two elements of an array: a count, and a sum of 16 hexadecimal digits.
    private mutating func readHash() throws(WireFault) -> RangeHash {
        let count = try readCount()
        try expectNext()
        _ = json.peek()
        let start = json.position
        let text = try json.readText()
        let isHexadecimal = text.utf8.count == 16 && text.utf8.first != UInt8(ascii: "+")
        guard isHexadecimal, let sum = UInt64(text, radix: 16) else {
            throw WireFault("Expected a hash of 16 hexadecimal digits.", at: start, shape: true)
        }
        try expectEnd()
        return RangeHash(count: count, sum: sum)
    }

    mutating func readElements(
        _ element: (inout SyncReader) throws(WireFault) -> Void
    ) throws(WireFault) {
        try json.enter(.array)
        var more = try json.beginsElement(of: .array)
        while more {
            try element(&self)
            more = try json.hasNext(in: .array)
        }
    }

    private mutating func readOptionalID() throws(WireFault) -> RecordID? {
        try json.readNull() ? nil : try readKey()
    }

    /// Reads a key as a bound: any integer, any text.
    private mutating func readKey() throws(WireFault) -> RecordID {
        if json.nextKind() == .text { return .text(try json.readText()) }
        return .integer(try json.readInteger())
    }

    private mutating func expectNext() throws(WireFault) {
        guard try json.hasNext(in: .array) else { throw json.shape("An element is missing.") }
    }

    private mutating func expectEnd() throws(WireFault) {
        if try json.hasNext(in: .array) { throw json.shape("An element too many.") }
    }
}

extension CheckedRange {
    /// Refuses a range whose bounds are reversed, empty or of two kinds, and one that does not
    /// begin after the one before.
    fileprivate func check(after last: CheckedRange?, at start: Int) throws(WireFault) {
        func follow(_ lower: RecordID, _ upper: RecordID, orSame: Bool) throws(WireFault) {
            let isOfOneKind =
                switch (lower, upper) {
                case (.integer, .integer), (.text, .text): true
                default: false
                }
            guard isOfOneKind, lower < upper || orSame && lower == upper else {
                throw WireFault(
                    "The ranges of a check overlap, or their bounds are reversed.", at: start)
            }
        }
        if let from, let below { try follow(from, below, orSame: false) }
        guard let last else { return }
        guard let end = last.below, let from else {
            throw WireFault("Two ranges of a check are open at the same end.", at: start)
        }
        try follow(end, from, orSame: true)
    }
}
