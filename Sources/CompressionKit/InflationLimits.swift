/// The maximum size of the data of an untrusted compressed body.
public struct InflationLimits: Hashable, Sendable {
    /// The maximum number of bytes, whatever the compressed size.
    public let bytes: Int
    /// The maximum as a multiple of the compressed size, for data above `ratioFloor` bytes. Deflate
    /// reaches about 1,030.
    public let ratio: Int
    public let ratioFloor: Int

    public init(bytes: Int, ratio: Int, ratioFloor: Int) {
        self.bytes = max(0, bytes)
        self.ratio = max(1, ratio)
        self.ratioFloor = max(0, ratioFloor)
    }

    /// Returns the maximum number of bytes for `count` compressed bytes.
    public func cap(forCompressed count: Int) -> Int {
        let (product, overflow) = count.multipliedReportingOverflow(by: ratio)
        return min(bytes, overflow ? Int.max : max(ratioFloor, product))
    }

    /// Returns the error for `count` compressed bytes whose data is larger than the cap.
    public func error(forCompressed count: Int) -> CompressionError {
        if cap(forCompressed: count) == bytes {
            return CompressionError(
                .tooLarge, "the body inflates to more than \(bytes) bytes, the most accepted")
        }
        return CompressionError(
            .ratio,
            """
            the body inflates to more than \(ratio) times its \(count) bytes, which only a crafted \
            one does
            """)
    }
}
