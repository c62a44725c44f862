internal import CZlib

/// Compresses what comes in pieces to one gzip member (RFC 1952), in memory that does not depend on
/// how much comes.
public final class GzipWriter {
    private let stream: DeflateStream

    /// - Parameter level: 1 (fastest) to 9 (smallest); others are brought into that range.
    public init(level: Int32 = 6) {
        stream = DeflateStream(level: level, format: .gzip)
    }

    /// The compressed bytes that are ready once a piece has gone in; often none.
    /// - Parameter isLast: Whether the member ends with this piece. No call may follow.
    public func write(_ piece: [UInt8], isLast: Bool) -> [UInt8] {
        stream.continueCompressing(piece, flush: isLast ? Z_FINISH : Z_NO_FLUSH)
    }
}

@available(*, unavailable)
extension GzipWriter: Sendable {}

/// The CRC-32 of gzip (RFC 1952, section 8), over what comes in pieces.
public struct CRC32: Hashable, Sendable {
    /// The checksum of what has come.
    public private(set) var value: UInt32

    /// A checksum of nothing, or the one to go on from.
    public init(_ value: UInt32 = 0) {
        self.value = value
    }

    public mutating func update(_ bytes: [UInt8]) {
        value = bytes.withUnsafeBufferPointer {
            UInt32(truncatingIfNeeded: crc32_z(UInt(value), $0.baseAddress, $0.count))
        }
    }
}
