internal import CZlib

/// Joins compressed pieces, and plain bytes between them, to one gzip member.
///
/// Joining costs a copy and no compression. The result is one member, because not all programs read
/// several members in one body. RFC 1952 allows them, but curl and URLSession stop at the second.
public struct GzipJoiner: Sendable {
    // These are the magic number, deflate, no flags, no time, no extra flags and an unknown system.
    private var bytes: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]
    private var crc: UInt32 = 0
    /// The number of bytes of the member's data.
    public private(set) var uncompressedCount = 0

    /// - Parameter capacity: The expected number of compressed bytes.
    public init(reserving capacity: Int = 0) {
        bytes.reserveCapacity(capacity + 32)
    }

    public mutating func append(_ piece: DeflatePiece) {
        bytes.append(contentsOf: piece.bytes)
        add(crc32: piece.crc32, count: piece.uncompressedCount)
    }

    /// Adds bytes uncompressed, in stored blocks, for the few bytes between pieces.
    public mutating func append(plain: [UInt8]) {
        var start = 0
        while start < plain.count {
            let count = min(plain.count - start, 0xffff)
            // A stored block that is not the last one, its length and the complement, low byte
            // first.
            let low = UInt8(truncatingIfNeeded: count)
            let high = UInt8(truncatingIfNeeded: count >> 8)
            bytes.append(contentsOf: [0, low, high, ~low, ~high])
            bytes.append(contentsOf: plain[start..<(start + count)])
            start += count
        }
        add(crc32: checksum(plain), count: plain.count)
    }

    /// Returns the member. The joiner does not change, so more bytes and another call may follow.
    public func finished() -> [UInt8] {
        var member = bytes
        // An empty last block with fixed codes.
        member.append(contentsOf: [0x03, 0x00])
        for number in [crc, UInt32(truncatingIfNeeded: uncompressedCount)] {
            for shift in [0, 8, 16, 24] as [UInt32] {
                member.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        return member
    }

    private mutating func add(crc32 other: UInt32, count: Int) {
        crc = UInt32(truncatingIfNeeded: crc32_combine(UInt(crc), UInt(other), count))
        uncompressedCount += count
    }
}
