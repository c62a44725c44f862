internal import MartletModel
internal import SQLiteRecords

/// The confirmed records of one type between two keys, hashed at one moment.
///
/// It is kept for the whole comparison, so that no write meanwhile disturbs the comparison. It
/// takes about 40 bytes for each record.
struct HashedRecords: Sendable {
    let type: EntityType
    let attributes: [Attribute]
    /// The range of keys; nil if it is open.
    let from: RecordID?
    let below: RecordID?
    /// Records that are left out, because the device's tables refuse the server's values.
    let leftOut: Set<RecordID>
    /// The keys of the records, in their order.
    private(set) var ids: [RecordID] = []
    /// The sum of the hashes of all records before each position; the last is that of all records.
    private var totals: [RangeHash] = [RangeHash()]

    init(
        type: EntityType, attributes: [Attribute], from: RecordID? = nil, below: RecordID? = nil,
        leftOut: Set<RecordID> = []
    ) {
        self.type = type
        self.attributes = attributes
        self.from = from
        self.below = below
        self.leftOut = leftOut
    }

    /// Adds the record with the next key.
    mutating func append(_ id: RecordID, _ hash: RangeHash) {
        ids.append(id)
        totals.append(totals[totals.count - 1] + hash)
    }

    func hash(_ range: Range<Int>) -> RangeHash {
        totals[range.upperBound] - totals[range.lowerBound]
    }

    /// Returns the position of the first key that is not before `id`.
    /// - Complexity: O(log *n*).
    func position(of id: RecordID) -> Int {
        var (low, high) = (0, ids.count)
        while low < high {
            let middle = (low + high) / 2
            if ids[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the hash of one record; an empty one if there is no such record.
    /// - Complexity: O(log *n*).
    func hash(of id: RecordID) -> RangeHash {
        let position = position(of: id)
        guard position < ids.count, ids[position] == id else { return RangeHash() }
        return hash(position..<(position + 1))
    }
}
