public import MartletModel

/// One transaction's changes to any number of records of any number of types.
///
/// The same shape travels both ways. Up, it is one local save. Down, it is an entry of the change
/// log (with `revision`), or a refusal (with `conflict` true, a `reason`, and the true state: rows
/// that exist under `update`, meaning insert or replace, and rows that do not under `delete`).
public struct ChangeSet: Hashable, Sendable {
    /// Names the set for its life.
    public var identifier: String?
    /// The set's number on its device, growing.
    public var sequence: Int64?
    /// The device's revision when the local transaction committed.
    public var seen: Revision?
    /// The set that must be decided before this one.
    public var dependencyIdentifier: String?
    /// The user's time, RFC 3339 in UTC with milliseconds.
    public var timestamp: String?
    /// Down only: the data set's revision this accepted set made.
    public var revision: Revision?
    /// Down only: true for a refused set, false for the device's own accepted set; absent
    /// otherwise.
    public var conflict: Bool?
    /// Down only: why the set was refused.
    public var reason: RefusalReason?
    /// Down only: the refusal in a sentence.
    public var message: String?
    /// Down only: seconds after which sending the set again may succeed; absent when the refusal
    /// is final.
    public var retryAfter: Int64?
    /// Down only: whether this is no entry of the log but a difference: rows as they are at
    /// `revision`, whole, under `update`, meaning insert or replace, each with the revision at
    /// which it last changed; and records that are gone under `delete`.
    public var isDifference = false
    /// Down only: whether some true rows of a refused set are missing, because they are more than
    /// an answer holds.
    public var isTruthCut = false
    /// The changes, in the order of `types`.
    public var types: [TypeChanges]
    /// What is wrong with the set's shape, found while reading; such a set has no usable changes.
    /// Never written.
    public var defect: String?
    /// Where the set stood in the bytes it was read from. Never written, never compared.
    public var source: SourceRange

    public init(types: [TypeChanges] = []) {
        self.types = types
        self.source = SourceRange()
    }

    /// Whether the set names itself as the one that it depends on.
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
    public var start = 0
    public var end = 0

    public init() {}

    public init(start: Int, end: Int) {
        self.start = start
        self.end = end
    }

    public static func == (left: SourceRange, right: SourceRange) -> Bool { true }
    public func hash(into hasher: inout Hasher) {}
}
