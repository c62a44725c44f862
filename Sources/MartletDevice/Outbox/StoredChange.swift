internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// One record's part of a stored change set.
struct StoredChange {
    /// The number of the record's type in Martlet's tables.
    let number: Int64
    /// The type's position in the schema; nil where a migration took the type away. Such a change
    /// is still sent and shown, and nothing of it is written to a table.
    let type: Int?
    var id: RecordID
    let operation: RecordOperation
    var baseRevision: Revision
    let base: [UInt8]?
    var after: [UInt8]?

    /// The record it changes.
    var key: RecordKey { RecordKey(type: number, id: id) }

    /// What it sets; nothing where it deletes.
    func attributes() throws -> Attributes {
        guard let after else { return Attributes() }
        return try SyncCoder.decodeAttributes(after)
    }
}
