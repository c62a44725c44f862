internal import CZlib

/// Compressed bytes that can be put anywhere into a gzip member (`GzipJoiner`).
///
/// The piece is raw deflate (RFC 1951) that ends, byte-aligned, with zlib's Z_FULL_FLUSH. Following
/// bytes do not refer back into it.
public struct DeflatePiece: Hashable, Sendable {
    /// The compressed bytes.
    public let bytes: [UInt8]
    /// The CRC-32 of the uncompressed bytes.
    public let crc32: UInt32
    public let uncompressedCount: Int

    /// Creates a piece from stored parts. The caller ensures that they belong together.
    public init(bytes: [UInt8], crc32: UInt32, uncompressedCount: Int) {
        self.bytes = bytes
        self.crc32 = crc32
        self.uncompressedCount = uncompressedCount
    }

    /// Compresses `plain`. For many pieces, `PieceCompressor` saves the set-up.
    /// - Parameter level: 1 (fastest) to 9 (smallest). Other levels are clamped to this range.
    public init(compressing plain: [UInt8], level: Int32 = 1) {
        self = PieceCompressor(level: level).piece(plain)
    }
}

/// Makes pieces, and reuses zlib's memory (256 KiB) for each.
public final class PieceCompressor {
    private let stream: DeflateStream

    /// - Parameter level: 1 (fastest) to 9 (smallest). Other levels are clamped to this range.
    public init(level: Int32 = 1) {
        stream = DeflateStream(level: level, format: .raw)
    }

    public func piece(_ plain: [UInt8]) -> DeflatePiece {
        DeflatePiece(
            bytes: plain.isEmpty ? [] : stream.compress(plain, flush: Z_FULL_FLUSH),
            crc32: checksum(plain), uncompressedCount: plain.count)
    }
}

@available(*, unavailable)
extension PieceCompressor: Sendable {}

/// Returns the CRC-32 of gzip (RFC 1952, section 8).
func checksum(_ bytes: [UInt8]) -> UInt32 {
    bytes.withUnsafeBufferPointer {
        UInt32(truncatingIfNeeded: crc32_z(0, $0.baseAddress, $0.count))
    }
}
