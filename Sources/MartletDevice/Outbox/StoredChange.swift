internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// One record's part of a stored change set.
struct StoredChange {
    /// The number of the record's type in Martlet's tables.
    let number: Int64
    /// The type's position in the schema; nil if a migration removed the type. Such a change is
    /// still sent and shown, but not written to a table.
    let type: Int?
    var id: RecordID
    let operation: RecordOperation
    var baseRevision: Revision
    let base: [UInt8]?
    var after: [UInt8]?

    /// The record it changes.
    var key: RecordKey { RecordKey(type: number, id: id) }

    /// Returns the attributes that it sets; none for a delete.
    /// - Throws: `WireFault` if the stored bytes cannot be read.
    func attributes() throws -> Attributes {
        guard let after else { return Attributes() }
        return try SyncCoder.decodeAttributes(after)
    }
}
