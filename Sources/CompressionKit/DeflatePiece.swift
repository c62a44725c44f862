internal import CZlib

/// Bytes compressed so that they can stand anywhere in a gzip member (`GzipJoiner`).
///
/// The piece is raw deflate (RFC 1951) that ends, byte-aligned, in zlib's Z_FULL_FLUSH: what
/// follows does not refer back into it.
public struct DeflatePiece: Hashable, Sendable {
    /// The compressed bytes.
    public let bytes: [UInt8]
    /// The CRC-32 of the uncompressed bytes.
    public let crc32: UInt32
    public let uncompressedCount: Int

    /// A piece that was kept elsewhere; whoever keeps it answers for it.
    public init(bytes: [UInt8], crc32: UInt32, uncompressedCount: Int) {
        self.bytes = bytes
        self.crc32 = crc32
        self.uncompressedCount = uncompressedCount
    }

    /// Compresses `plain` alone; where many pieces are made, `PieceCompressor` spares the set-up.
    /// - Parameter level: 1 (fastest) to 9 (smallest); others are brought into that range.
    public init(compressing plain: [UInt8], level: Int32 = 1) {
        self = PieceCompressor(level: level).piece(plain)
    }
}

/// Makes pieces, keeping zlib's memory (256 KiB) from one to the next.
public final class PieceCompressor {
    private let stream: DeflateStream

    /// - Parameter level: 1 (fastest) to 9 (smallest); others are brought into that range.
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

/// The CRC-32 of gzip (RFC 1952, section 8).
func checksum(_ bytes: [UInt8]) -> UInt32 {
    bytes.withUnsafeBufferPointer {
        UInt32(truncatingIfNeeded: crc32_z(0, $0.baseAddress, $0.count))
    }
}
