/// A summary of a range of records, by which two parties compare them: their number, and the sum of
/// their hashes.
///
/// The sum wraps at 64 bits. It does not depend on the order, and the contribution of a record can
/// be subtracted again.
package struct RangeHash: Hashable, Sendable {
    /// The number of rows.
    package private(set) var count: Int64
    /// The sum of the records' contributions.
    package private(set) var sum: UInt64

    /// Creates the summary of no records.
    package init() {
        count = 0
        sum = 0
    }

    /// Creates a summary from its parts.
    /// - Parameters:
    ///   - count: The number of rows.
    ///   - sum: The sum of the records' contributions.
    package init(count: Int64, sum: UInt64) {
        self.count = count
        self.sum = sum
    }

    /// Adds a row's hash.
    package mutating func add(row: UInt64) {
        count &+= 1
        sum &+= row
    }

    /// Adds the hash of a record's revision, which counts in addition to its row's hash.
    package mutating func add(mark: UInt64) {
        sum &+= mark
    }

    /// Returns the summary of both ranges together.
    package static func + (left: RangeHash, right: RangeHash) -> RangeHash {
        RangeHash(count: left.count &+ right.count, sum: left.sum &+ right.sum)
    }

    /// Returns the summary without the records of the right range.
    package static func - (left: RangeHash, right: RangeHash) -> RangeHash {
        RangeHash(count: left.count &- right.count, sum: left.sum &- right.sum)
    }
}
