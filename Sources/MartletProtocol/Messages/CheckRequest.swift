package import MartletModel

/// The hashes of a device's confirmed records, by type and range of keys, for the server to
/// compare.
///
/// It refers to one revision, which may be older than the request's. Later changes are left out of
/// the comparison, so that a check ends however much other devices write.
package struct CheckRequest: Hashable, Sendable {
    /// The revision at which the device's state was hashed.
    package var revision: Revision
    /// The types, each at most once.
    package var types: [CheckedType]

    package init(revision: Revision, types: [CheckedType] = []) {
        self.revision = revision
        self.types = types
    }
}

/// The ranges of one type.
package struct CheckedType: Hashable, Sendable {
    /// The entity type's name.
    package var name: String
    /// The attributes that are hashed, with the kinds they have on the device.
    package var attributes: [CheckedAttribute]
    /// The ranges, which do not overlap, in the order of their keys.
    package var ranges: [CheckedRange]

    package init(name: String, attributes: [CheckedAttribute], ranges: [CheckedRange] = []) {
        self.name = name
        self.attributes = attributes
        self.ranges = ranges
    }
}

/// An attribute that is hashed.
package struct CheckedAttribute: Hashable, Sendable {
    /// The attribute's name.
    package var name: String
    /// The word for the kind, as in `GET /schema`.
    package var kind: String

    package init(name: String, kind: String) {
        self.name = name
        self.kind = kind
    }
}

/// A range of keys, and the hash of the device's records in it. Integer keys are ordered by number,
/// text keys by their UTF-8 bytes.
package struct CheckedRange: Hashable, Sendable {
    /// The first key; nil if the range starts at the beginning.
    package var from: RecordID?
    /// The key before which the range ends; nil if it goes to the end.
    package var below: RecordID?
    /// The hash of the device's records in the range.
    package var hash: RangeHash

    package init(from: RecordID? = nil, below: RecordID? = nil, hash: RangeHash) {
        self.from = from
        self.below = below
        self.hash = hash
    }
}
