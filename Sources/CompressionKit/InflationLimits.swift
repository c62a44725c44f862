/// How many bytes an untrusted compressed body may become.
public struct InflationLimits: Hashable, Sendable {
    /// Bytes, whatever the compressed size.
    public let bytes: Int
    /// Times the compressed size, beyond `ratioFloor` bytes. Deflate reaches about 1030.
    public let ratio: Int
    public let ratioFloor: Int

    public init(bytes: Int, ratio: Int, ratioFloor: Int) {
        self.bytes = max(0, bytes)
        self.ratio = max(1, ratio)
        self.ratioFloor = max(0, ratioFloor)
    }

    /// The most bytes `count` compressed ones may become.
    public func cap(forCompressed count: Int) -> Int {
        let (product, overflow) = count.multipliedReportingOverflow(by: ratio)
        return min(bytes, overflow ? Int.max : max(ratioFloor, product))
    }

    /// What to say of `count` compressed bytes that became more than the cap.
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
