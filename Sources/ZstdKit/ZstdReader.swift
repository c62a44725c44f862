internal import CZstd

/// Decompresses one Zstandard frame (RFC 8878) that arrives in pieces.
public final class ZstdReader {
    private let context: OpaquePointer
    private var buffer: [UInt8]
    /// Whether the frame has ended.
    public private(set) var isAtEnd = false

    public init() {
        guard let context = ZSTD_createDCtx() else {
            preconditionFailure("zstd: no memory for a decompressor")
        }
        self.context = context
        buffer = [UInt8](repeating: 0, count: ZSTD_DStreamOutSize())
    }

    deinit {
        ZSTD_freeDCtx(context)
    }

    /// Returns the data of the next piece.
    /// - Throws: `ZstdError` if the bytes are no frame, are damaged, or continue after its end.
    public func read(_ piece: [UInt8]) throws(ZstdError) -> [UInt8] {
        var output: [UInt8] = []
        var failure: ZstdError?
        piece.withUnsafeBytes { source in
            var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
            var isFull = false
            while input.pos < input.size || isFull {
                if isAtEnd {
                    failure = ZstdError(message: "bytes follow the end of the frame")
                    return
                }
                let (hint, written) = buffer.withUnsafeMutableBytes { target in
                    var out = ZSTD_outBuffer(
                        dst: target.baseAddress, size: target.count, pos: 0)
                    let hint = ZSTD_decompressStream(context, &out, &input)
                    return (hint, out.pos)
                }
                guard ZSTD_isError(hint) == 0 else {
                    failure = ZstdError(message: String(cString: ZSTD_getErrorName(hint)))
                    return
                }
                output += buffer[..<written]
                isFull = written == buffer.count
                isAtEnd = hint == 0
                if isAtEnd { isFull = false }
            }
        }
        if let failure { throw failure }
        return output
    }
}

@available(*, unavailable)
extension ZstdReader: Sendable {}

/// The error for bytes that are no valid Zstandard frame.
public struct ZstdError: Error, Hashable, Sendable {
    /// A description of the fault.
    public let message: String
}
