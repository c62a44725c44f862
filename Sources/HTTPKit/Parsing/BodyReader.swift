/// Collects a request's body from bytes that arrive piece by piece.
struct BodyReader {
    private(set) var body: [UInt8] = []
    private var remaining: Int
    private var chunks: ChunkedDecoder?
    private let limit: Int

    /// A claimed length is believed as far as this before the bytes have come.
    private static let eagerByteCount = 1 << 20

    /// - Throws: 413 for a length over `limit`.
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

    /// The length the head named; nil where it named none.
    var claimedByteCount: Int? {
        chunks == nil ? body.count + remaining : nil
    }

    /// - Returns: The number of bytes that belong to this body.
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
