internal import CZlib

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
