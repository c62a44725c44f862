internal import CZstd

/// Compresses data that arrives in pieces to one Zstandard frame (RFC 8878). The memory does not
/// depend on the amount of data.
public final class ZstdWriter {
    private let context: OpaquePointer
    private var buffer: [UInt8]

    /// - Parameter level: 1 (fastest) to 19 (smallest). Other levels are clamped to this range.
    public init(level: Int32 = 1) {
        guard let context = ZSTD_createCCtx() else {
            preconditionFailure("zstd: no memory for a compressor")
        }
        self.context = context
        buffer = [UInt8](repeating: 0, count: ZSTD_CStreamOutSize())
        let set = ZSTD_CCtx_setParameter(
            context, ZSTD_c_compressionLevel, min(max(level, 1), 19))
        // With the checksum, every reader notices damage.
        let checked = ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
        precondition(
            ZSTD_isError(set) == 0 && ZSTD_isError(checked) == 0, "zstd: a parameter was refused")
    }

    deinit {
        ZSTD_freeCCtx(context)
    }

    /// Compresses a piece, and returns the compressed bytes that are ready; often there are none.
    /// - Parameter isLast: True if the frame ends with this piece. No call may follow.
    public func write(_ piece: [UInt8], isLast: Bool) -> [UInt8] {
        var output: [UInt8] = []
        let mode = isLast ? ZSTD_e_end : ZSTD_e_continue
        piece.withUnsafeBytes { source in
            var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
            var isDone = false
            while !isDone {
                let (left, written) = buffer.withUnsafeMutableBytes { target in
                    var out = ZSTD_outBuffer(
                        dst: target.baseAddress, size: target.count, pos: 0)
                    let left = ZSTD_compressStream2(context, &out, &input, mode)
                    return (left, out.pos)
                }
                precondition(ZSTD_isError(left) == 0, "zstd: compressing failed")
                output += buffer[..<written]
                isDone = isLast ? left == 0 : input.pos == input.size
            }
        }
        return output
    }
}

@available(*, unavailable)
extension ZstdWriter: Sendable {}
