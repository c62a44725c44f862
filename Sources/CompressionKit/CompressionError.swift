/// The error for compressed bytes that are not accepted.
public struct CompressionError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Kind: String, Hashable, Sendable {
        /// The bytes do not begin as a gzip file does.
        case notGzip
        /// The compressed data is damaged.
        case corrupt
        /// The bytes end before the data does.
        case truncated
        /// The data does not match its checksum or its length.
        case checksum
        /// Bytes follow the end of the data.
        case trailingBytes
        /// A second gzip member follows the first. Many programs stop after the first, so that
        /// two readers of one body would see different data.
        case severalMembers
        /// The data is larger than the limit.
        case tooLarge
        /// The data is larger for its compressed size than an honest sender's data can be.
        case ratio
        /// The memory is exhausted.
        case memory
    }

    public let kind: Kind
    /// A sentence about the fault.
    public let message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    public var description: String { message }
}
