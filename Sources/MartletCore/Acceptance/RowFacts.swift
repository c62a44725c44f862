public import MartletProtocol

/// What the server keeps about one record beside its attributes, also after its deletion.
public struct RowFacts: Hashable, Sendable {
    /// The revision at which the record last changed.
    public var revision: Revision
    /// The device that made that change; 0 where none is known.
    public var author: Int64
    /// The last revision made by anyone but `author`; 0 where there is none.
    public var others: Revision
    public var isDeleted: Bool

    public init(revision: Revision, author: Int64, others: Revision, isDeleted: Bool = false) {
        self.revision = revision
        self.author = author
        self.others = others
        self.isDeleted = isDeleted
    }

    /// The newest revision a device must know to change the record: a device never conflicts with
    /// its own work.
    public func newestForeign(to device: Int64) -> Revision {
        device != 0 && author == device ? others : revision
    }

    /// The facts once a device has changed or deleted the record.
    public func changed(by device: Int64, at revision: Revision, isDeleted: Bool) -> RowFacts {
        RowFacts(
            revision: revision, author: device, others: newestForeign(to: device),
            isDeleted: isDeleted)
    }
}
