package import MartletModel

/// The server's comparison of a device's ranges with its own.
package struct CheckAnswer: Hashable, Sendable {
    /// The revision at which the server compared: at least the answer's `maxRevision`. The verdicts
    /// hold at every revision from the request's to this one.
    package var revision: Revision
    /// Whether too much has changed since the request's revision. Nothing was compared then, and
    /// the device has to hash again.
    package var isBehind: Bool
    /// The verdicts, one for each type of the request, in the same order.
    package var types: [TypeVerdict]

    package init(revision: Revision, isBehind: Bool = false, types: [TypeVerdict] = []) {
        self.revision = revision
        self.isBehind = isBehind
        self.types = types
    }
}

/// The verdict on the ranges of one type.
package struct TypeVerdict: Hashable, Sendable {
    /// The entity type's name.
    package var name: String
    /// Whether the server has no such type, or one whose keys are of another kind.
    package var isUnknown: Bool
    /// Attributes that the server does not have, or has with another kind. The device has to ask
    /// again without them.
    package var unknownAttributes: [String]
    /// The verdicts, one for each range of the request, in the same order; empty if anything is
    /// unknown.
    package var ranges: [RangeVerdict]

    package init(
        name: String, isUnknown: Bool = false, unknownAttributes: [String] = [],
        ranges: [RangeVerdict] = []
    ) {
        self.name = name
        self.isUnknown = isUnknown
        self.unknownAttributes = unknownAttributes
        self.ranges = ranges
    }
}

/// The verdict on one range.
package enum RangeVerdict: Hashable, Sendable {
    /// Nothing in the range has changed since, and both sides are equal.
    case equal
    /// The server's hash, without the listed records, which have changed since or cannot be sent.
    /// The device removes them from its own hash, and splits the range if it still differs.
    case hash(RangeHash, without: [RecordID])
    /// The server's rows in the range, whole, in the order of their keys, without the listed
    /// records.
    case rows(CheckedRows)
}

/// The rows of a range.
package struct CheckedRows: Hashable, Sendable {
    /// Whole records, each with its revision.
    package var rows: [RecordEntry]
    /// The key before which the rows end, if not all of them fitted. The device has to ask again
    /// for the rest.
    package var next: RecordID?
    /// Records that are not compared.
    package var without: [RecordID]

    package init(rows: [RecordEntry], next: RecordID? = nil, without: [RecordID] = []) {
        self.rows = rows
        self.next = next
        self.without = without
    }
}
