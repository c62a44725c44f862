internal import MartletModel

/// A record: the number of its type in Martlet's tables, and its id.
struct RecordKey: Hashable {
    let type: Int64
    let id: RecordID
}
