public import MartletModel

/// The changes of one change set to the records of one type.
public struct TypeChanges: Hashable, Sendable {
    /// The entity type's name: its table.
    public var name: String
    /// Ids of new records. Temporary (negative) from a device, permanent from the server.
    public var create: [RecordID]
    public var update: [RecordID]
    public var delete: [RecordID]
    /// What is known of each record. Every entry's id stands in one of the three lists; a created
    /// or updated record has exactly one entry, a deleted one at most one (its `revision`).
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

/// One member of `attributes`: a record's id, its attributes, and what Martlet says of it.
public struct RecordEntry: Hashable, Sendable {
    public var id: RecordID
    /// Up: the revision the change is based on. Down: the revision at which the record last
    /// changed. On the wire it stands among the attributes as `revision`.
    public var revision: Revision?
    /// Down, to the device that made the record: the temporary id it had. `__oldId__` on the wire.
    public var oldID: RecordID?
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
