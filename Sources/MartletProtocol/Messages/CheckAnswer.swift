public import MartletModel

/// What the server found when it compared a device's ranges with its own.
public struct CheckAnswer: Hashable, Sendable {
    /// The revision at which the server looked: at least the answer's `maxRevision`. What is said
    /// of records holds at every revision from the request's to this one.
    public var revision: Revision
    /// Too much changed since the revision asked about: nothing was compared; hash again.
    public var isBehind: Bool
    /// One for each type asked about, in that order.
    public var types: [TypeVerdict]

    public init(revision: Revision, isBehind: Bool = false, types: [TypeVerdict] = []) {
        self.revision = revision
        self.isBehind = isBehind
        self.types = types
    }
}

/// What was found in the ranges of one type.
public struct TypeVerdict: Hashable, Sendable {
    public var name: String
    /// Whether the server has no such type, or one whose keys are of another kind.
    public var isUnknown: Bool
    /// Attributes the server does not have, or has with another kind; ask again without them.
    public var unknownAttributes: [String]
    /// One for each range asked about, in that order; none where anything is unknown.
    public var ranges: [RangeVerdict]

    public init(
        name: String, isUnknown: Bool = false, unknownAttributes: [String] = [],
        ranges: [RangeVerdict] = []
    ) {
        self.name = name
        self.isUnknown = isUnknown
        self.unknownAttributes = unknownAttributes
        self.ranges = ranges
    }
}

/// What was found in one range.
public enum RangeVerdict: Hashable, Sendable {
    /// Nothing in it changed since, and both sides hold the same.
    case equal
    /// What the server holds, without the records listed: they changed since, or cannot be sent.
    /// The device takes them out of its own hash, and splits the range where it still differs.
    case hash(RangeHash, without: [RecordID])
    /// The server's rows in it, whole, in the order of their keys, without the records listed.
    case rows(CheckedRows)
}

/// The rows of a range.
public struct CheckedRows: Hashable, Sendable {
    /// Whole records, each with its revision.
    public var rows: [RecordEntry]
    /// The key before which the rows end, where not all fitted; ask again for the rest.
    public var next: RecordID?
    /// Records that take no part in the comparison.
    public var without: [RecordID]

    public init(rows: [RecordEntry], next: RecordID? = nil, without: [RecordID] = []) {
        self.rows = rows
        self.next = next
        self.without = without
    }
}
