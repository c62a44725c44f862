internal import CZlib

/// Joins pieces, compressed before, and plain bytes between them to one gzip member.
///
/// Joining costs a copy and no compression. It is one member because several in one body are read
/// by some programs and not by others (RFC 1952 allows them; curl and URLSession stop at the
/// second).
public struct GzipJoiner: Sendable {
    // Magic, deflate, no flags, no time, no extra flags, unknown system.
    private var bytes: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]
    private var crc: UInt32 = 0
    /// Bytes the member holds once inflated.
    public private(set) var uncompressedCount = 0

    /// - Parameter capacity: Compressed bytes expected.
    public init(reserving capacity: Int = 0) {
        bytes.reserveCapacity(capacity + 32)
    }

    public mutating func append(_ piece: DeflatePiece) {
        bytes.append(contentsOf: piece.bytes)
        add(crc32: piece.crc32, count: piece.uncompressedCount)
    }

    /// Adds bytes as they are, in stored blocks: for the few bytes between pieces.
    public mutating func append(plain: [UInt8]) {
        var start = 0
        while start < plain.count {
            let count = min(plain.count - start, 0xffff)
            // Not the last block, stored; the length and its complement, low byte first.
            let low = UInt8(truncatingIfNeeded: count)
            let high = UInt8(truncatingIfNeeded: count >> 8)
            bytes.append(contentsOf: [0, low, high, ~low, ~high])
            bytes.append(contentsOf: plain[start..<(start + count)])
            start += count
        }
        add(crc32: checksum(plain), count: plain.count)
    }

    /// The member. The joiner is then as it was: more may follow, and another member be taken.
    public func finished() -> [UInt8] {
        var member = bytes
        // The last block, of fixed codes, empty.
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
