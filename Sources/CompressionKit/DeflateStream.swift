internal import CZlib

/// zlib's compressor, which is reused for many streams.
final class DeflateStream {
    enum Format {
        case gzip
        case raw
    }

    // The stream is on the heap, because zlib keeps its address and refuses to work with another.
    private let stream: UnsafeMutablePointer<z_stream>

    init(level: Int32, format: Format) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // 15 is the largest window, + 16 makes a gzip frame, and a negative number no frame. 8 is
        // zlib's usual memory.
        let window: Int32 = format == .gzip ? 15 + 16 : -15
        let code = deflateInit2_(
            stream, min(max(level, 1), 9), Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY,
            ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(code == Z_OK, "zlib: no memory for a compressor, or another version")
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Compresses all of `bytes` as a separate stream.
    /// - Parameter flush: `Z_FINISH` or `Z_FULL_FLUSH`, the way in which the result ends.
    func compress(_ bytes: [UInt8], flush: Int32) -> [UInt8] {
        deflateReset(stream)
        // deflateBound holds for Z_FINISH; a full flush adds at most an empty block.
        let bound = Int(deflateBound(stream, UInt(bytes.count))) + 16
        let most = 1 << 30
        return [UInt8](unsafeUninitializedCapacity: bound) { target, count in
            bytes.withUnsafeBufferPointer { source in
                var read = 0
                var result = Z_OK
                repeat {
                    let available = min(source.count - read, most)
                    let room = min(target.count - count, most)
                    stream.pointee.next_in = source.baseAddress.map {
                        UnsafeMutablePointer(mutating: $0 + read)
                    }
                    stream.pointee.avail_in = UInt32(available)
                    stream.pointee.next_out = target.baseAddress.map { $0 + count }
                    stream.pointee.avail_out = UInt32(room)
                    let last = read + available == source.count
                    result = deflate(stream, last ? flush : Z_NO_FLUSH)
                    read += available - Int(stream.pointee.avail_in)
                    count += room - Int(stream.pointee.avail_out)
                    precondition(
                        result == Z_OK || result == Z_STREAM_END, "zlib: deflate failed")
                } while read < source.count
                    || (flush == Z_FINISH ? result != Z_STREAM_END : stream.pointee.avail_out == 0)
            }
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
        }
    }
}
