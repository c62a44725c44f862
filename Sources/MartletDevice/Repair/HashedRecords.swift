internal import MartletModel
internal import SQLiteRecords

/// What a device holds as confirmed of one type between two keys, hashed at one moment.
///
/// It is kept for the whole comparison, so that what is written meanwhile, by whomever, does not
/// disturb it: about 40 bytes a record.
struct HashedRecords: Sendable {
    let type: EntityType
    let attributes: [Attribute]
    /// The range of keys; nil: open.
    let from: RecordID?
    let below: RecordID?
    /// Records that take no part: the device's tables refuse what the server has of them.
    let leftOut: Set<RecordID>
    /// The keys there are, in their order.
    private(set) var ids: [RecordID] = []
    /// The hash of all records before each position, and at last of all.
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

    /// The position of the first key that is not before `id`.
    func position(of id: RecordID) -> Int {
        var (low, high) = (0, ids.count)
        while low < high {
            let middle = (low + high) / 2
            if ids[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// What a record contributes; nothing where there is no such record.
    func hash(of id: RecordID) -> RangeHash {
        let position = position(of: id)
        guard position < ids.count, ids[position] == id else { return RangeHash() }
        return hash(position..<(position + 1))
    }
}
