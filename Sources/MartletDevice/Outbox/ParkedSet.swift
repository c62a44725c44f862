public import MartletModel
public import MartletStore

/// A change set that was refused, by the server or by the device itself. The device keeps it until a
/// person decides.
///
/// ```swift
/// for set in try await client.parked() {
///     print(set.reason, set.message)
///     if userWants(set) { try await client.retry(set.identifier) }
/// }
/// ```
public struct ParkedSet: Sendable {
    /// The set's identifier. Pass it to `retry` or `drop`.
    public let identifier: String
    /// The reason of the refusal.
    public let reason: RefusalReason
    /// A sentence about the refusal.
    public let message: String
    /// The user's time of the save.
    public let timestamp: String
    /// Whether the answer that refused the set did not hold all of the server's rows. If so,
    /// `theirs` of a change may be older than the row that caused the refusal, until the device is
    /// up to date.
    public let isTruthCut: Bool
    /// The changes of the set, one for each record.
    public let changes: [ParkedChange]
}

/// One record of a refused change set: its earlier values, the edit, and its present values.
///
/// The values are `SQLValue`s, so an app can write them back. If a migration removed the type's table,
/// binary data is base64 text.
public struct ParkedChange: Sendable {
    /// What the edit did to the record.
    public enum Operation: String, Sendable {
        case create
        case update
        case delete
    }

    /// The entity type.
    public let type: String
    /// The record's id.
    public let id: RecordID
    /// The kind of the edit.
    public let operation: Operation
    /// The revision the edit was based on.
    public let baseRevision: Revision
    /// The confirmed record at the time of the edit; nil for a create.
    public let base: RecordValues?
    /// The attributes that the edit set: all of them for a create, the changed ones for an update;
    /// nil for a delete.
    public let mine: RecordValues?
    /// The record as the server has it, as far as this device knows; nil if the server has none.
    public let theirs: RecordValues?
}
