/// What two parties compare of a range of records: how many there are, and the sum of their
/// hashes.
///
/// The sum wraps at 64 bits. It depends on no order, and what one record contributes can be taken
/// out again.
public struct RangeHash: Hashable, Sendable {
    /// The number of rows.
    public private(set) var count: Int64
    /// The sum of what the records contribute.
    public private(set) var sum: UInt64

    /// No records.
    public init() {
        count = 0
        sum = 0
    }

    /// - Parameters:
    ///   - count: The number of rows.
    ///   - sum: The sum of what the records contribute.
    public init(count: Int64, sum: UInt64) {
        self.count = count
        self.sum = sum
    }

    /// Adds a row's hash.
    public mutating func add(row: UInt64) {
        count &+= 1
        sum &+= row
    }

    /// Adds the hash of a record's revision, which stands beside its row's.
    public mutating func add(mark: UInt64) {
        sum &+= mark
    }

    /// Adds all records of another range.
    public static func + (left: RangeHash, right: RangeHash) -> RangeHash {
        RangeHash(count: left.count &+ right.count, sum: left.sum &+ right.sum)
    }

    /// Takes the records of a part out.
    public static func - (left: RangeHash, right: RangeHash) -> RangeHash {
        RangeHash(count: left.count &- right.count, sum: left.sum &- right.sum)
    }
}
