internal import MartletModel
internal import MartletProtocol
internal import SQLiteRecords

/// Finds the records in which a device and the server differ, by halving. It asks again about
/// ranges of keys whose hashes differ, in smaller ranges, until the server sends the rows.
///
/// It compares two fixed states: the device's records at one revision, and those of the server that
/// have not changed since. The differences it finds are therefore true, and it ends, however much
/// is written meanwhile.
struct SelfCheck: Sendable {
    /// A record that differs.
    struct Difference: Sendable {
        /// The position of its type among the records checked.
        let typeIndex: Int
        let id: RecordID
        /// The server's record; nil if it has none.
        let truth: RecordEntry?
    }

    /// The result of an answer.
    struct Outcome: Sendable {
        var differences: [Difference] = []
        /// Attributes that the server does not know. The caller hashes again without them.
        var unknownAttributes: [String: [String]] = [:]
        var unknownTypes: [String] = []
        /// Whether too much has changed since. The caller then hashes again.
        var isBehind = false
    }

    /// The error that an answer does not belong to the request.
    struct Mismatch: Error {}

    private struct Part {
        let typeIndex: Int
        let range: Range<Int>
        let from: RecordID?
        let below: RecordID?
    }

    /// The number of records at or below which a range is not split any more.
    static let fewRecords = 16
    /// The number of records in a range that the server is meant to answer with rows, if it
    /// differs.
    private static let goal = 10
    /// The most ranges into which a type is cut while nothing is known of it.
    private static let mostParts = 256

    let revision: Revision
    let records: [HashedRecords]
    private var open: [Part] = []
    private var asked: [Part] = []

    /// Begins a check.
    /// - Parameter revision: The revision at which the records were hashed.
    init(revision: Revision, records: [HashedRecords]) {
        self.revision = revision
        self.records = records
        for (typeIndex, hashed) in records.enumerated() {
            let whole = Part(
                typeIndex: typeIndex, range: 0..<hashed.ids.count, from: hashed.from,
                below: hashed.below)
            open += split(whole, into: Self.firstParts(of: hashed.ids.count))
        }
    }

    /// Returns the number of ranges to begin with. It is small, because data is mostly equal, and
    /// large enough that ranges that differ are split only once more.
    static func firstParts(of count: Int) -> Int {
        let root = Int(Double(count / goal * 4).squareRoot())
        return max(1, min(mostParts, root))
    }

    /// Returns the next request; nil if everything is compared.
    mutating func next() -> CheckRequest? {
        guard !open.isEmpty else { return nil }
        open.sort { ($0.typeIndex, $0.range.lowerBound) < ($1.typeIndex, $1.range.lowerBound) }
        asked = Array(open.prefix(Limits.checkRanges))
        open.removeFirst(asked.count)
        var request = CheckRequest(revision: revision)
        var last: Int?
        for part in asked {
            let hashed = records[part.typeIndex]
            if part.typeIndex != last {
                request.types.append(
                    CheckedType(
                        name: hashed.type.name,
                        attributes: hashed.attributes.map {
                            CheckedAttribute(name: $0.name, kind: $0.kind.rawValue)
                        }))
                last = part.typeIndex
            }
            request.types[request.types.count - 1].ranges.append(
                CheckedRange(
                    from: part.from, below: part.below, hash: hashed.hash(part.range)))
        }
        return request
    }

    /// Handles the answer to the last request.
    /// - Throws: `Mismatch` if it does not belong to the request; the check cannot continue then.
    mutating func take(_ answer: CheckAnswer) throws -> Outcome {
        var outcome = Outcome()
        guard !answer.isBehind else {
            outcome.isBehind = true
            return outcome
        }
        var rest = asked[...]
        asked = []
        for verdict in answer.types {
            guard let typeIndex = rest.first?.typeIndex,
                records[typeIndex].type.name == verdict.name
            else {
                throw Mismatch()
            }
            let parts = rest.prefix { $0.typeIndex == typeIndex }
            rest = rest.dropFirst(parts.count)
            if verdict.isUnknown {
                outcome.unknownTypes.append(verdict.name)
            } else if !verdict.unknownAttributes.isEmpty {
                outcome.unknownAttributes[verdict.name] = verdict.unknownAttributes
            } else {
                guard verdict.ranges.count == parts.count else { throw Mismatch() }
                for (part, found) in zip(parts, verdict.ranges) {
                    take(found, of: part, &outcome)
                }
            }
        }
        guard rest.isEmpty else { throw Mismatch() }
        return outcome
    }

    private mutating func take(_ found: RangeVerdict, of part: Part, _ outcome: inout Outcome) {
        switch found {
        case .equal: break
        case .hash(let hash, let without):
            let hashed = records[part.typeIndex]
            let own = without.reduce(hashed.hash(part.range)) { $0 - hashed.hash(of: $1) }
            guard own != hash else { return }
            // A range that is small already had no room in this answer.
            let isSmall = min(Int64(part.range.count), hash.count) <= Int64(Self.fewRecords)
            let count = (part.range.count + Self.goal - 1) / Self.goal
            open += isSmall ? [part] : split(part, into: max(2, min(Self.mostParts, count)))
        case .rows(let rows): compare(rows, part, &outcome)
        }
    }

    private func split(_ part: Part, into count: Int) -> [Part] {
        let ids = records[part.typeIndex].ids
        let count = max(1, min(count, part.range.count))
        var parts: [Part] = []
        var start = part.range.lowerBound
        var from = part.from
        for index in 1...count {
            let isLast = index == count
            let end = part.range.lowerBound + part.range.count * index / count
            let below = isLast ? part.below : ids[end]
            parts.append(
                Part(typeIndex: part.typeIndex, range: start..<end, from: from, below: below))
            start = end
            from = below
        }
        return parts
    }

    private mutating func compare(_ found: CheckedRows, _ part: Part, _ outcome: inout Outcome) {
        let hashed = records[part.typeIndex]
        var end = part.range.upperBound
        if let next = found.next {
            end = max(part.range.lowerBound, min(end, hashed.position(of: next)))
            open.append(
                Part(
                    typeIndex: part.typeIndex, range: end..<part.range.upperBound, from: next,
                    below: part.below))
        }
        let ignored = hashed.leftOut.union(found.without)
        var hasher = RowHasher(type: hashed.type, attributes: hashed.attributes)
        var seen: Set<RecordID> = []
        for row in found.rows where !ignored.contains(row.id) {
            seen.insert(row.id)
            var hash = RangeHash()
            hash.add(row: hasher.hash(row.id, row.attributes))
            hash.add(mark: hasher.mark(row.id, row.revision ?? 0))
            if hashed.hash(of: row.id) != hash {
                outcome.differences.append(
                    Difference(typeIndex: part.typeIndex, id: row.id, truth: row))
            }
        }
        for id in hashed.ids[part.range.lowerBound..<end]
        where !seen.contains(id) && !ignored.contains(id) {
            outcome.differences.append(Difference(typeIndex: part.typeIndex, id: id, truth: nil))
        }
    }
}
