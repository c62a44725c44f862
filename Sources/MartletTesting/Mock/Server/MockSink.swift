internal import HTTPKit

/// Takes the bytes of an answer's body, and cuts them where the script says.
struct MockSink {
    /// The body ends here, in good order.
    struct Truncated: Error {}
    /// The connection breaks here.
    struct Cut: Error {}

    private let writer: HTTPBodyWriter
    private let drip: (bytes: Int, pause: Int64)?
    private var cut: Int?
    private var truncate: Int?
    private var written = 0

    init(writer: HTTPBodyWriter, drip: (bytes: Int, pause: Int64)?) {
        self.writer = writer
        self.drip = drip
    }

    /// What is written from now on belongs to a part.
    mutating func begin(_ part: MockPart) {
        (cut, truncate, written) = (part.cut, part.truncate, 0)
    }

    /// - Throws: `Cut`, `Truncated`, or the client is gone.
    mutating func write(_ bytes: [UInt8]) async throws {
        guard let limit = cut ?? truncate, written + bytes.count >= limit else {
            written += bytes.count
            return try await push(bytes)
        }
        try await push(Array(bytes.prefix(limit - written)))
        try await breakOff()
    }

    /// Writes pieces put together, once they are long enough.
    mutating func write(_ piece: inout [UInt8], beyond count: Int) async throws {
        guard piece.count >= count else { return }
        try await write(piece)
        piece.removeAll(keepingCapacity: true)
    }

    /// The part is over. A cut beyond its end falls there.
    mutating func end() async throws {
        if cut != nil || truncate != nil { try await breakOff() }
    }

    private func breakOff() async throws {
        guard cut != nil else { throw Truncated() }
        // What was written before must arrive: the cut is at this byte, not earlier.
        try await writer.flush()
        throw Cut()
    }

    private func push(_ bytes: [UInt8]) async throws {
        guard let drip else { return try await writer.write(bytes) }
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + drip.bytes)
            try await writer.write(Array(bytes[position..<end]))
            try await writer.flush()
            try await Task.sleep(for: .milliseconds(drip.pause))
            position = end
        }
    }
}
