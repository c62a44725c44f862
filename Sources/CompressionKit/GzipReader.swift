internal import CZlib

/// Inflates a gzip file (RFC 1952) piece by piece. The file may have several members in a row.
///
/// The size of the data has no limit. Use it for the user's own files, never for a body from the
/// network. A piece of *n* bytes becomes at most about 1,030 × *n* bytes.
public final class GzipReader {
    // The stream is on the heap, because zlib keeps its address and refuses to work with another.
    private let stream: UnsafeMutablePointer<z_stream>
    /// Whether the last byte ended a member. The file can only end there.
    private var isBetweenMembers = true

    public init() {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // 15 + 16 is the largest window, in the gzip format only.
        let code = inflateInit2_(
            stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(code == Z_OK, "zlib: no memory for an inflater, or another version")
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Returns the data of the file's next piece.
    /// - Throws: `CompressionError` if the file is not gzip or is damaged.
    public func inflate(_ piece: [UInt8]) throws(CompressionError) -> [UInt8] {
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: max(4_096, piece.count * 4))
        var read = 0
        while true {
            if isBetweenMembers {
                guard read < piece.count else { return output }
                inflateReset(stream)
                isBetweenMembers = false
            }
            let room = buffer.count
            let (code, nowRead, nowWritten) = step(piece[read...], &buffer)
            read += nowRead
            output.append(contentsOf: buffer[..<nowWritten])
            switch code {
            case Z_STREAM_END:
                isBetweenMembers = true
            case Z_OK, Z_BUF_ERROR:
                if read == piece.count, nowWritten < room { return output }
            default:
                throw CompressionError(.corrupt, "the file is not gzip data, or is damaged")
            }
        }
    }

    /// Ends the file.
    /// - Throws: `CompressionError` if its gzip data is incomplete.
    public func finish() throws(CompressionError) {
        guard isBetweenMembers else {
            throw CompressionError(.truncated, "the file ends before its gzip data does")
        }
    }

    private func step(
        _ input: ArraySlice<UInt8>, _ output: inout [UInt8]
    ) -> (code: Int32, read: Int, written: Int) {
        let available = UInt32(min(input.count, 1 << 30))
        let room = UInt32(output.count)
        let code = input.withUnsafeBufferPointer { source in
            output.withUnsafeMutableBufferPointer { target in
                stream.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
                stream.pointee.avail_in = available
                stream.pointee.next_out = target.baseAddress
                stream.pointee.avail_out = room
                return CZlib.inflate(stream, Z_NO_FLUSH)
            }
        }
        let read = Int(available - stream.pointee.avail_in)
        let written = Int(room - stream.pointee.avail_out)
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        return (code, read, written)
    }
}

@available(*, unavailable)
extension GzipReader: Sendable {}
