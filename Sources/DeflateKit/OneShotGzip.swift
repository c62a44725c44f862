internal import CDeflate
public import CompressionKit

/// Compresses and inflates whole bodies in the gzip format with libdeflate, which takes half of
/// zlib's time.
///
/// The data and the errors are those of `Gzip`.
public enum OneShotGzip {
    /// - Parameter level: 1 (fastest) to 12 (smallest). Other levels are clamped to this range.
    public static func compress(_ bytes: [UInt8], level: Int32 = 1) -> [UInt8] {
        guard let compressor = libdeflate_alloc_compressor(min(max(level, 1), 12)) else {
            return Gzip.compress(bytes, level: level)
        }
        defer { libdeflate_free_compressor(compressor) }
        let bound = libdeflate_gzip_compress_bound(compressor, bytes.count)
        return [UInt8](unsafeUninitializedCapacity: bound) { target, count in
            count = bytes.withUnsafeBytes { source in
                libdeflate_gzip_compress(
                    compressor, source.baseAddress, source.count, target.baseAddress,
                    target.count)
            }
            precondition(count > 0, "libdeflate: its bound did not hold")
        }
    }

    /// Returns the data of one gzip member. Nothing may follow the member.
    ///
    /// It never allocates more memory than the limits allow.
    public static func inflate(
        _ bytes: [UInt8], limit: Int, ratio: Int, ratioFloor: Int
    ) throws(CompressionError) -> [UInt8] {
        try inflate(
            bytes, limits: InflationLimits(bytes: limit, ratio: ratio, ratioFloor: ratioFloor))
    }

    public static func inflate(
        _ bytes: [UInt8], limits: InflationLimits
    ) throws(CompressionError) -> [UInt8] {
        // The last four bytes of the frame are the length. The checksum reveals a wrong one, and a
        // length beyond the cap is ignored.
        let told = bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        let cap = limits.cap(forCompressed: bytes.count)
        // libdeflate does not verify a checksum of the header, which hardly any program writes.
        let hasHeaderChecksum = bytes.count > 3 && bytes[3] & 0x02 != 0
        if told <= cap, !hasHeaderChecksum, let output = inflate(bytes, into: told) {
            return output
        }
        // zlib says what is wrong. If only the length was wrong, it stops at the cap.
        return try Gzip.inflate(bytes, limits: limits)
    }

    /// Returns nil unless `bytes` are one member of exactly `capacity` bytes of data.
    private static func inflate(_ bytes: [UInt8], into capacity: Int) -> [UInt8]? {
        guard let decompressor = libdeflate_alloc_decompressor() else { return nil }
        defer { libdeflate_free_decompressor(decompressor) }
        var isWhole = false
        let output = [UInt8](unsafeUninitializedCapacity: max(capacity, 1)) { target, count in
            var read = 0
            let result = bytes.withUnsafeBytes { source in
                libdeflate_gzip_decompress_ex(
                    decompressor, source.baseAddress, source.count, target.baseAddress, capacity,
                    &read, &count)
            }
            isWhole = result == LIBDEFLATE_SUCCESS && read == bytes.count
            if result != LIBDEFLATE_SUCCESS { count = 0 }
        }
        return isWhole ? output : nil
    }
}
