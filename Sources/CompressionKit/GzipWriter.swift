internal import CZlib

/// Compresses data that arrives in pieces to one gzip member (RFC 1952). The memory does not depend
/// on the amount of data.
public final class GzipWriter {
    private let stream: DeflateStream

    /// - Parameter level: 1 (fastest) to 9 (smallest). Other levels are clamped to this range.
    public init(level: Int32 = 6) {
        stream = DeflateStream(level: level, format: .gzip)
    }

    /// Compresses a piece, and returns the compressed bytes that are ready; often there are none.
    /// - Parameter isLast: True if the member ends with this piece. No call may follow.
    public func write(_ piece: [UInt8], isLast: Bool) -> [UInt8] {
        stream.continueCompressing(piece, flush: isLast ? Z_FINISH : Z_NO_FLUSH)
    }
}

@available(*, unavailable)
extension GzipWriter: Sendable {}

/// The CRC-32 of gzip (RFC 1952, section 8), over data that arrives in pieces.
public struct CRC32: Hashable, Sendable {
    /// The checksum of the data so far.
    public private(set) var value: UInt32

    /// Creates the checksum of no data, or continues from an earlier one.
    public init(_ value: UInt32 = 0) {
        self.value = value
    }

    public mutating func update(_ bytes: [UInt8]) {
        value = bytes.withUnsafeBufferPointer {
            UInt32(truncatingIfNeeded: crc32_z(UInt(value), $0.baseAddress, $0.count))
        }
    }
}
