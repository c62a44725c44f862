package import MartletModel
import SQLiteRecords

/// Decides which keys of rows devices can receive.
///
/// The server assigns or checks the keys in devices' sets. External writes, and triggers and
/// actions of the tables, may write any key.
package enum SendableKey {
    /// Returns a sentence that says why devices cannot receive a row with this key; nil if they
    /// can. It does not show the key.
    ///
    /// - Parameter greatest: The greatest integer that is synchronised.
    package static func fault(
        of id: RecordID, _ type: EntityType, greatest: Int64 = .max
    ) -> String? {
        if case .integer(let number) = id {
            // Negative ids are temporary, and zero is no id.
            if number <= 0 { return "its key is not positive" }
            if number > greatest {
                return "its key is greater than \(greatest), the greatest that is synchronised"
            }
        }
        return RecordTable.mismatch(id, type).map { "its key cannot be sent: \($0)" }
    }
}
