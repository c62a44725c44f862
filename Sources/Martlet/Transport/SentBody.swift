internal import CompressionKit
internal import MartletModel
internal import MartletProtocol

/// A request's body in the form in which it is sent.
struct SentBody {
    let bytes: [UInt8]
    let isGzip: Bool

    /// Shorter bodies are sent uncompressed, because gzip gains nothing.
    private static let compressedFrom = 1_024

    /// Compresses a body, unless it does not shrink, or shrinks so much that a server would take it
    /// for an attack.
    init(_ plain: [UInt8]) {
        guard plain.count >= Self.compressedFrom else {
            (bytes, isGzip) = (plain, false)
            return
        }
        let packed = Gzip.compress(plain)
        let limits = InflationLimits(
            bytes: Limits.inflatedBytes, ratio: Limits.inflationRatio,
            ratioFloor: Limits.inflationRatioFloor)
        let isCredible = plain.count <= limits.cap(forCompressed: packed.count)
        isGzip =
            packed.count < plain.count && (isCredible || plain.count > Limits.requestBytes)
        bytes = isGzip ? packed : plain
    }
}
