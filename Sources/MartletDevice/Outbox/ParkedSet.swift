public import MartletModel
internal import MartletProtocol

/// A refused change set, kept until someone decides.
public struct ParkedSet: Sendable {
    public let identifier: String
    public let reason: RefusalReason
    public let message: String
    /// The user's time of the save.
    public let timestamp: String
    /// Whether the server's rows were more than its answer held when it refused the set: `theirs` of a
    /// change may then be older than what the set was refused for, until the device is up to date.
    public let isTruthCut: Bool
    public let changes: [ParkedChange]
}

/// One record of a refused change set: what it was, what was made of it, and what it is now.
public struct ParkedChange: Sendable {
    /// What the edit did to the record.
    public enum Operation: String, Sendable {
        case create
        case update
        case delete
    }

    public let type: String
    public let id: RecordID
    public let operation: Operation
    /// The revision the edit was based on.
    public let baseRevision: Revision
    /// The record as it was confirmed when it was edited; nil for a create.
    public let base: Attributes?
    /// What the edit set: all attributes of a create, the changed ones of an update; nil for a
    /// delete.
    public let mine: Attributes?
    /// The record as the server has it, as far as this device knows; nil where it has none.
    public let theirs: Attributes?
}
