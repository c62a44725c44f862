public import MartletModel

/// The changes of one transaction, to any number of records of any number of types.
///
/// Both directions use the same form. Up, it is one local save. Down, it is an entry of the change
/// log (with `revision`), or a refusal (with `conflict` true, a `reason`, and the true state:
/// existing rows under `update`, meaning insert or replace, and other rows under `delete`).
public struct ChangeSet: Hashable, Sendable {
    /// The name of the set, which never changes.
    public var identifier: String?
    /// The set's number on its device; the numbers increase.
    public var sequence: Int64?
    /// The device's revision when the local transaction committed.
    public var seen: Revision?
    /// The identifier of the set that must be decided before this one.
    public var dependencyIdentifier: String?
    /// The user's time of the save, RFC 3339 in UTC with milliseconds.
    public var timestamp: String?
    /// Down only: the data set's revision that this accepted set made.
    public var revision: Revision?
    /// Down only: true for a refused set, false for the device's own accepted set; absent
    /// otherwise.
    public var conflict: Bool?
    /// Down only: the reason why the set was refused.
    public var reason: RefusalReason?
    /// Down only: a sentence about the refusal.
    public var message: String?
    /// Down only: seconds after which sending the set again may succeed; absent if the refusal is
    /// final.
    public var retryAfter: Int64?
    /// Down only: whether this is a difference instead of an entry of the log. A difference has
    /// whole rows as they are at `revision`, under `update`, meaning insert or replace, each with
    /// the revision at which it last changed; and deleted records under `delete`.
    public var isDifference = false
    /// Down only: whether some true rows of a refused set are missing, because they are more than
    /// an answer may hold.
    public var isTruthCut = false
    /// The changes, in the order of `types`.
    public var types: [TypeChanges]
    /// The fault in the set's shape, found while reading; such a set has no usable changes. It is
    /// never written.
    public var defect: String?
    /// The position of the set in the bytes from which it was read. It is never written or
    /// compared.
    public var source: SourceRange

    /// Creates a set with changes and no other members.
    public init(types: [TypeChanges] = []) {
        self.types = types
        self.source = SourceRange()
    }

    /// Whether the set names itself as the one on which it depends.
    package var needsItself: Bool {
        guard let identifier, let dependencyIdentifier else { return false }
        return dependencyIdentifier.hasSameBytes(as: identifier)
    }

    /// The number of records named in the set.
    public var recordCount: Int {
        types.reduce(0) { $0 + $1.create.count + $1.update.count + $1.delete.count }
    }
}

/// A range of byte positions that does not take part in comparison.
public struct SourceRange: Hashable, Sendable {
    /// The first byte.
    public var start = 0
    /// The byte after the last.
    public var end = 0

    public init() {}

    public init(start: Int, end: Int) {
        self.start = start
        self.end = end
    }

    public static func == (left: SourceRange, right: SourceRange) -> Bool { true }
    public func hash(into hasher: inout Hasher) {}
}
