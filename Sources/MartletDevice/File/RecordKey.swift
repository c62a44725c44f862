internal import MartletModel

/// A record in the device's file: the number of its type in Martlet's tables, which stays when the
/// schema changes, and its id. A `RecordAddress` has the position in the schema instead of the
/// number.
struct RecordKey: Hashable {
    let type: Int64
    let id: RecordID
}
