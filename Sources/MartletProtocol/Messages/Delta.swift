public import MartletModel

/// One record's part of an accepted change set, as the delta stream carries it.
///
/// `v` is the revision of the change set, which all its deltas share. One number is therefore the
/// cursor of both the stream and `POST /sync`.
public struct Delta: Hashable, Sendable {
    /// The kind of the change.
    public enum Operation: String, Sendable {
        /// The record exists now, with the given values. Other attributes stay as they are; in a
        /// new record they are null.
        case upsert
        case delete
    }

    /// `v`: the change set's revision.
    public var version: Revision
    /// `t`: the time at which the server accepted it, in seconds since 1970.
    public var seconds: Int64
    /// `e`: the entity type.
    public var type: String
    /// `eid`: the record's id; an integer id is in decimal.
    public var id: String
    /// `op`: the kind of the change.
    public var operation: Operation
    /// `p`: the attributes as the text of a JSON object; nil for a delete.
    public var payload: String? {
        get { body?.text }
        set { body = newValue.map { DeltaPayload($0) } }
    }
    /// `p`, with its attributes if these were read already.
    var body: DeltaPayload?
    /// `new`: whether `payload` is the whole record, which the set created.
    public var isNew: Bool
    /// `r`: the record's revision, if it is not the set's.
    public var recordRevision: Revision?
    /// `set`: the change set's identifier, for the device that made it.
    public var identifier: String?
    /// `old`: the record's temporary id, for the device that made it.
    public var oldID: Int64?

    public init(
        version: Revision, seconds: Int64, type: String, id: String, operation: Operation,
        payload: String? = nil, isNew: Bool = false, recordRevision: Revision? = nil,
        identifier: String? = nil, oldID: Int64? = nil
    ) {
        self.version = version
        self.seconds = seconds
        self.type = type
        self.id = id
        self.operation = operation
        body = payload.map { DeltaPayload($0) }
        self.isNew = isNew
        self.recordRevision = recordRevision
        self.identifier = identifier
        self.oldID = oldID
    }

    /// Returns the attributes in `payload`; reads them only if that was not done with the delta.
    /// - Throws: `WireFault` if the payload is missing, or no object of plain values.
    package func attributes() throws(WireFault) -> Attributes {
        try (body ?? DeltaPayload("")).attributes()
    }
}
