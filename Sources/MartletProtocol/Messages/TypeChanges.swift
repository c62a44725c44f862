public import MartletModel

/// The changes of one change set to the records of one type.
public struct TypeChanges: Hashable, Sendable {
    /// The entity type's name: its table.
    public var name: String
    /// The ids of new records: temporary (negative) from a device, permanent from the server.
    public var create: [RecordID]
    /// The ids of changed records.
    public var update: [RecordID]
    /// The ids of deleted records.
    public var delete: [RecordID]
    /// Down only, in a difference: the ids among `delete` of records that left the view of the
    /// device's user, or that were deleted while it showed a part of their type. A device keeps no
    /// earlier values of them.
    public var hidden: [RecordID] = []
    /// The entries of the records. Every entry's id occurs in one of the three lists. A created or
    /// updated record has exactly one entry, a deleted one at most one (its `revision`).
    public var entries: [RecordEntry]

    public init(
        name: String, create: [RecordID] = [], update: [RecordID] = [], delete: [RecordID] = [],
        entries: [RecordEntry] = []
    ) {
        self.name = name
        self.create = create
        self.update = update
        self.delete = delete
        self.entries = entries
    }
}

/// One member of `attributes`: a record's id, its attributes, and Martlet's own data about it.
public struct RecordEntry: Hashable, Sendable {
    /// The record's id.
    public var id: RecordID
    /// Up: the revision on which the change is based. Down: the revision at which the record last
    /// changed. On the wire it is `revision`, among the attributes.
    public var revision: Revision?
    /// Down, to the device that made the record: its temporary id. On the wire it is `__oldId__`.
    public var oldID: RecordID?
    /// The record's attributes: all of a new or whole record, the changed ones otherwise.
    public var attributes: Attributes

    public init(
        id: RecordID, revision: Revision? = nil, oldID: RecordID? = nil,
        attributes: Attributes = Attributes()
    ) {
        self.id = id
        self.revision = revision
        self.oldID = oldID
        self.attributes = attributes
    }
}
