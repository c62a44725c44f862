package import MartletModel
package import SQLiteKit

/// The synchronised tables of a database, as contexts and queries need them.
///
/// Only its owner calls it, one call at a time; every call blocks.
package protocol SyncedTables: AnyObject {
    var connection: Connection { get }
    var schema: Schema { get }
    /// The lowest temporary id that the app's own statements have taken; nil if there is none.
    /// - Throws: `SQLiteError`.
    var lowestNotedID: Int64? { get throws }

    /// Returns a type's position in the schema.
    /// - Throws: `StoreError` `.unknown` if there is no such type.
    func index(of type: String) throws -> Int
    /// Returns the permanent id of a temporary one if it is known; otherwise the id as it is.
    /// - Throws: `SQLiteError`.
    func resolve(_ id: RecordID, type: Int) throws -> RecordID
}

/// The kind of change that a transaction made to a record. Device files store the raw value.
package enum RecordOperation: Int64, Sendable {
    case create = 1
    case update = 2
    case delete = 3
}
