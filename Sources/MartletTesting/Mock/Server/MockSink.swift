internal import HTTPKit

/// Writes the bytes of an answer's body, and cuts it at the byte that the script names.
struct MockSink {
    /// The body ends here properly.
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

    /// Begins a part. All later bytes belong to it.
    mutating func begin(_ part: MockPart) {
        (cut, truncate, written) = (part.cut, part.truncate, 0)
    }

    /// - Throws: `Cut`, `Truncated`, or the writer's error if the client is gone.
    mutating func write(_ bytes: [UInt8]) async throws {
        guard let limit = cut ?? truncate, written + bytes.count >= limit else {
            written += bytes.count
            return try await push(bytes)
        }
        try await push(Array(bytes.prefix(limit - written)))
        try await breakOff()
    }

    /// Writes gathered bytes, once there are enough, and empties them.
    mutating func write(_ piece: inout [UInt8], beyond count: Int) async throws {
        guard piece.count >= count else { return }
        try await write(piece)
        piece.removeAll(keepingCapacity: true)
    }

    /// Ends the part. If the cut lies beyond its end, it happens here.
    mutating func end() async throws {
        if cut != nil || truncate != nil { try await breakOff() }
    }

    private func breakOff() async throws {
        guard cut != nil else { throw Truncated() }
        // Earlier bytes must arrive, because the cut is at this byte and not before.
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
