public import MartletModel

/// What a device holds as confirmed, by type and range of keys, for the server to compare.
///
/// It speaks of one revision, which may be older than the request's: what changed since is left out
/// of the comparison, so that a check comes to its end however much others write.
public struct CheckRequest: Hashable, Sendable {
    /// The revision at which the device's state was hashed.
    public var revision: Revision
    /// Each type at most once.
    public var types: [CheckedType]

    public init(revision: Revision, types: [CheckedType] = []) {
        self.revision = revision
        self.types = types
    }
}

/// The ranges of one type.
public struct CheckedType: Hashable, Sendable {
    /// The entity type's name.
    public var name: String
    /// The attributes that are hashed, with the kinds they have on the device.
    public var attributes: [CheckedAttribute]
    /// Ranges that do not overlap, in the order of their keys.
    public var ranges: [CheckedRange]

    public init(name: String, attributes: [CheckedAttribute], ranges: [CheckedRange] = []) {
        self.name = name
        self.attributes = attributes
        self.ranges = ranges
    }
}

/// An attribute that is hashed.
public struct CheckedAttribute: Hashable, Sendable {
    public var name: String
    /// The kind's word, as `GET /schema` has it.
    public var kind: String

    public init(name: String, kind: String) {
        self.name = name
        self.kind = kind
    }
}

/// A range of keys, and what the device has in it. Integer keys are ordered by number, text keys by
/// their UTF-8 bytes.
public struct CheckedRange: Hashable, Sendable {
    /// The first key; nil: from the beginning.
    public var from: RecordID?
    /// The key before which the range ends; nil: to the end.
    public var below: RecordID?
    public var hash: RangeHash

    public init(from: RecordID? = nil, below: RecordID? = nil, hash: RangeHash) {
        self.from = from
        self.below = below
        self.hash = hash
    }
}
