/// Removes the chunked transfer coding (RFC 9112 §7.1) from a body, strictly and byte by byte.
struct ChunkedDecoder {
    private enum State {
        case size(digits: Int)
        case extensions
        case sizeEnd
        case data
        case dataEnd
        case dataEndLF
        case trailer(lineLength: Int)
        case trailerLF(lineLength: Int)
        case done
    }

    /// The limit on the bytes of all chunk extensions and trailers together. The decoder skips
    /// them.
    static let extraLimit = 8 << 10

    private var state = State.size(digits: 0)
    private var size = 0
    private var extra = 0

    /// Whether the last chunk and its trailers have been read.
    var isDone: Bool {
        if case .done = state { return true }
        return false
    }

    /// Reads bytes and appends their data to `body`.
    /// - Returns: The number of bytes read. It is less than the number of bytes given only if
    ///   `isDone`.
    /// - Throws: `HTTPRefusal` for bytes that break the coding, and with status 413 if the body is
    ///   over `limit`.
    mutating func read(
        _ bytes: UnsafeRawBufferPointer, into body: inout [UInt8], limit: Int
    ) throws(HTTPRefusal) -> Int {
        var position = 0
        while position < bytes.count, !isDone {
            if case .data = state {
                let count = min(size, bytes.count - position)
                body.append(contentsOf: bytes[position..<(position + count)])
                position += count
                size -= count
                if size == 0 { state = .dataEnd }
            } else {
                try take(bytes[position], bodyCount: body.count, limit: limit)
                position += 1
            }
        }
        return position
    }

    private mutating func take(
        _ byte: UInt8, bodyCount: Int, limit: Int
    ) throws(HTTPRefusal) {
        switch state {
        case .size(let digits):
            try takeSize(byte, digits: digits, bodyCount: bodyCount, limit: limit)
        case .extensions:
            try countExtra()
            if byte == UInt8(ascii: "\r") {
                state = .sizeEnd
            } else if !HeadParser.isValue(byte) {
                throw Self.fault
            }
        case .sizeEnd:
            guard byte == UInt8(ascii: "\n") else { throw Self.fault }
            state = size == 0 ? .trailer(lineLength: 0) : .data
        case .dataEnd:
            guard byte == UInt8(ascii: "\r") else { throw Self.fault }
            state = .dataEndLF
        case .dataEndLF:
            guard byte == UInt8(ascii: "\n") else { throw Self.fault }
            state = .size(digits: 0)
        case .trailer(let lineLength):
            try countExtra()
            if byte == UInt8(ascii: "\r") {
                state = .trailerLF(lineLength: lineLength)
            } else if HeadParser.isValue(byte), lineLength > 0 || HeadParser.isToken(byte) {
                state = .trailer(lineLength: lineLength + 1)
            } else {
                throw Self.fault
            }
        case .trailerLF(let lineLength):
            guard byte == UInt8(ascii: "\n") else { throw Self.fault }
            state = lineLength == 0 ? .done : .trailer(lineLength: 0)
        case .data, .done:
            preconditionFailure("handled by the caller")
        }
    }

    private mutating func takeSize(
        _ byte: UInt8, digits: Int, bodyCount: Int, limit: Int
    ) throws(HTTPRefusal) {
        if let digit = Self.value(byte) {
            // Sixteen digits could overflow; fifteen digits exceed any limit.
            guard digits < 15 else { throw Self.fault }
            size = digits == 0 ? digit : size << 4 | digit
            guard size <= limit - bodyCount else { throw BodyReader.tooLarge(limit) }
            state = .size(digits: digits + 1)
        } else if digits > 0, byte == UInt8(ascii: "\r") {
            state = .sizeEnd
        } else if digits > 0, byte == UInt8(ascii: ";") {
            state = .extensions
        } else {
            throw Self.fault
        }
    }

    private mutating func countExtra() throws(HTTPRefusal) {
        extra += 1
        guard extra <= Self.extraLimit else {
            throw .badRequest("The body's chunk extensions and trailers are too long.")
        }
    }

    private static let fault = HTTPRefusal.badRequest(
        "The body does not keep to the chunked transfer coding.")

    private static func value(_ byte: UInt8) -> Int? {
        switch lowercased(byte) {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(lowercased(byte) - UInt8(ascii: "a")) + 10
        default: nil
        }
    }
}
