package import MartletModel
import SQLiteRecords

/// Which keys of rows a device can be sent.
///
/// Devices' sets get theirs from the server or are checked; other programs, and triggers and actions of the
/// tables, write what they like.
package enum SendableKey {
    /// A sentence that says why no device can be sent a row with this key; nil if it can. It does not
    /// show the key.
    /// - Parameter greatest: The greatest integer that is synchronised.
    package static func fault(
        of id: RecordID, _ type: EntityType, greatest: Int64 = .max
    ) -> String? {
        if case .integer(let number) = id {
            // Negative ids are the devices' own, and zero is none.
            if number <= 0 { return "its key is not positive" }
            if number > greatest {
                return "its key is greater than \(greatest), the greatest that is synchronised"
            }
        }
        return RecordTable.mismatch(id, type).map { "its key cannot be sent: \($0)" }
    }
}
