public import MartletModel

/// One record's part of an accepted change set, as the delta stream carries it.
///
/// `v` is the revision of the change set, shared by all its deltas, so one number is the cursor of
/// the stream and of `POST /sync` alike.
public struct Delta: Hashable, Sendable {
    /// What happened to the record.
    public enum Operation: String, Sendable {
        /// The record is there now, with the values given; attributes not given stay, and are null
        /// where the record is new.
        case upsert
        case delete
    }

    /// `v`: the change set's revision.
    public var version: Revision
    /// `t`: when the server accepted it, in seconds since 1970.
    public var seconds: Int64
    /// `e`: the entity type.
    public var type: String
    /// `eid`: the record's id, an integer one in decimal.
    public var id: String
    /// `op`.
    public var operation: Operation
    /// `p`: the attributes as the text of a JSON object; nil for a delete.
    public var payload: String? {
        get { body?.text }
        set { body = newValue.map { DeltaPayload($0) } }
    }
    /// `p`, with what it says where that was read already.
    var body: DeltaPayload?
    /// `new`: whether `payload` is the whole record, which the set created.
    public var isNew: Bool
    /// `r`: the record's revision where it is not the set's.
    public var recordRevision: Revision?
    /// `set`: the change set's identifier, for the device that made it.
    public var identifier: String?
    /// `old`: the temporary id the record had, for the device that made it.
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

    /// The attributes that `payload` says; read only where that was not done with the delta.
    /// - Throws: `WireFault` where it is no object of plain values, or not there.
    package func attributes() throws(WireFault) -> Attributes {
        try (body ?? DeltaPayload("")).attributes()
    }
}
