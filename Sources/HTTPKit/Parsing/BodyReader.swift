/// Collects a request's body from bytes that arrive piece by piece.
struct BodyReader {
    private(set) var body: [UInt8] = []
    private var remaining: Int
    private var chunks: ChunkedDecoder?
    private let limit: Int

    /// The most bytes to reserve for an announced length before the bytes have arrived.
    private static let eagerByteCount = 1 << 20

    /// Makes a reader for a body.
    /// - Throws: `HTTPRefusal` with status 413 if the length is over `limit`.
    init(_ framing: RequestHead.Framing, limit: Int) throws(HTTPRefusal) {
        self.limit = limit
        switch framing {
        case .length(let length):
            guard length <= limit else { throw Self.tooLarge(limit) }
            remaining = length
            body.reserveCapacity(min(length, Self.eagerByteCount))
        case .chunked:
            remaining = 0
            chunks = ChunkedDecoder()
        }
    }

    /// Whether the body is complete.
    var isDone: Bool {
        chunks?.isDone ?? (remaining == 0)
    }

    /// The length that the head announced; nil if it announced none.
    var claimedByteCount: Int? {
        chunks == nil ? body.count + remaining : nil
    }

    /// Reads bytes of the body.
    /// - Returns: The number of bytes that belong to this body.
    /// - Throws: `HTTPRefusal` if the bytes break the chunked coding or the limit.
    mutating func read(_ bytes: UnsafeRawBufferPointer) throws(HTTPRefusal) -> Int {
        if chunks != nil {
            return try chunks?.read(bytes, into: &body, limit: limit) ?? 0
        }
        let count = min(remaining, bytes.count)
        body.append(contentsOf: bytes[..<count])
        remaining -= count
        return count
    }

    static func tooLarge(_ limit: Int) -> HTTPRefusal {
        HTTPRefusal(
            status: 413, kind: "tooLarge",
            detail: "The request's body is larger than \(limit) bytes.")
    }
}
