internal import MartletModel
internal import SQLiteRecords

/// The position in a part of a snapshot at which its installation continues.
package struct SnapshotCursor: Hashable, Sendable {
    /// The position of the type among the part's types.
    fileprivate(set) var type = 0
    /// The key of the last record that was applied; nil before the first record of the type.
    fileprivate(set) var after: RecordID?

    package init() {}
}

/// Some records of a snapshot, which one transaction applies.
struct SnapshotSlice {
    /// Records of one type.
    struct Run {
        /// The position of the type among the snapshot's types.
        let type: Int
        let keys: SnapshotKeys
    }

    private(set) var runs: [Run] = []
    private(set) var recordCount = 0
    /// The cursor of the next slice; nil at the end.
    private(set) var next: SnapshotCursor?

    /// Takes all records.
    init(allOf reader: SnapshotReader) {
        runs = reader.schema.types.indices.map { Run(type: $0, keys: SnapshotKeys()) }
        recordCount = Int(reader.description.records)
    }

    /// Takes the records after a cursor, by type and key.
    init(of reader: SnapshotReader, from cursor: SnapshotCursor, limit: Int) throws {
        var cursor = cursor
        while cursor.type < reader.schema.types.count {
            guard recordCount < limit else {
                next = cursor
                return
            }
            let (keys, count) = try reader.keys(
                of: cursor.type, after: cursor.after, limit: limit - recordCount)
            if count > 0 { runs.append(Run(type: cursor.type, keys: keys)) }
            recordCount += count
            cursor.after = keys.last
            if keys.last == nil { cursor.type += 1 }
        }
    }
}
