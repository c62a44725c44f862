internal import CZlib

/// Compresses and inflates whole bodies in the gzip format (RFC 1952) with zlib.
public enum Gzip {
    /// - Parameter level: 1 (fastest) to 9 (smallest). Other levels are clamped to this range.
    public static func compress(_ bytes: [UInt8], level: Int32 = 1) -> [UInt8] {
        let stream = DeflateStream(level: level, format: .gzip)
        return stream.compress(bytes, flush: Z_FINISH)
    }

    /// Returns the data of one gzip member. Nothing may follow the member.
    ///
    /// Limits are checked while inflating, so that no more data is ever in memory.
    /// - Parameters:
    ///   - limit: The maximum number of bytes.
    ///   - ratio: The maximum size of the result as a multiple of the size of `bytes`. It applies
    ///     to results above `ratioFloor` bytes.
    public static func inflate(
        _ bytes: [UInt8], limit: Int, ratio: Int, ratioFloor: Int
    ) throws(CompressionError) -> [UInt8] {
        try inflate(
            bytes, limits: InflationLimits(bytes: limit, ratio: ratio, ratioFloor: ratioFloor))
    }

    public static func inflate(
        _ bytes: [UInt8], limits: InflationLimits
    ) throws(CompressionError) -> [UInt8] {
        // The stream is on the heap, because zlib keeps its address and refuses to work with
        // another.
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        defer { stream.deallocate() }
        // 15 + 16 is the largest window, in the gzip format only.
        let code = inflateInit2_(
            stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard code == Z_OK else {
            throw CompressionError(.memory, "no memory to inflate a body with")
        }
        defer { inflateEnd(stream) }
        let cap = limits.cap(forCompressed: bytes.count)
        // One byte over the cap shows that there is more.
        let most = cap == Int.max ? cap : cap + 1
        var output = [UInt8](repeating: 0, count: min(most, max(4_096, bytes.count * 4)))
        var written = 0
        var read = 0
        while true {
            let (result, nowRead, nowWritten) = step(
                stream, bytes[...].dropFirst(read), &output, from: written)
            read += nowRead
            written += nowWritten
            if result == Z_STREAM_END { break }
            guard result == Z_OK || result == Z_BUF_ERROR else {
                throw error(result, stream.pointee)
            }
            if written > cap { throw limits.error(forCompressed: bytes.count) }
            if written == output.count {
                // This doubles the room. The copied bytes are overwritten later. In a debug build,
                // copying from an array costs nothing, and each repeated zero costs a call.
                output.append(contentsOf: output.prefix(most - written))
            } else if read == bytes.count || (nowRead == 0 && nowWritten == 0) {
                throw CompressionError(
                    .truncated, "the body ends before its gzip data does; send it whole")
            }
        }
        if written > cap { throw limits.error(forCompressed: bytes.count) }
        try checkEnd(bytes[read...])
        output.removeLast(output.count - written)
        return output
    }

    /// Calls zlib once. zlib counts in 32 bits, so it gets input and output in pieces.
    private static func step(
        _ stream: UnsafeMutablePointer<z_stream>, _ input: ArraySlice<UInt8>,
        _ output: inout [UInt8],
        from start: Int
    ) -> (result: Int32, read: Int, written: Int) {
        let most = 1 << 30
        let available = UInt32(min(input.count, most))
        let room = UInt32(min(output.count - start, most))
        let result = input.withUnsafeBufferPointer { source in
            output.withUnsafeMutableBufferPointer { target in
                stream.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
                stream.pointee.avail_in = available
                stream.pointee.next_out = target.baseAddress.map { $0 + start }
                stream.pointee.avail_out = room
                return CZlib.inflate(stream, Z_NO_FLUSH)
            }
        }
        let read = Int(available - stream.pointee.avail_in)
        let written = Int(room - stream.pointee.avail_out)
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        return (result, read, written)
    }

    private static func checkEnd(_ rest: ArraySlice<UInt8>) throws(CompressionError) {
        guard !rest.isEmpty else { return }
        if rest.starts(with: [0x1f, 0x8b]) {
            throw CompressionError(
                .severalMembers, "the body has several gzip members; send it as one")
        }
        throw CompressionError(
            .trailingBytes, "\(rest.count) bytes follow the end of the gzip data; send it alone")
    }

    private static func error(_ result: Int32, _ stream: z_stream) -> CompressionError {
        guard result == Z_DATA_ERROR else {
            return result == Z_MEM_ERROR
                ? CompressionError(.memory, "no memory to inflate a body with")
                : CompressionError(.corrupt, "the gzip data is damaged")
        }
        let detail = stream.msg.map { String(cString: $0) } ?? ""
        switch detail {
        case "incorrect header check", "unknown compression method", "unknown header flags set":
            return CompressionError(.notGzip, "the body is not gzip data, though it is said to be")
        case "incorrect data check", "incorrect length check", "header crc mismatch":
            return CompressionError(.checksum, "the gzip data does not match its checksum")
        default:
            return CompressionError(.corrupt, "the gzip data is damaged: \(detail)")
        }
    }
}
