internal import CLibevent

/// A long body in the buffer that libevent sends it from.
///
/// The handler's thread copies it. If the loop did, all connections would wait for it, and bodies
/// that wait for the loop would fill the memory.
final class PackedBody: @unchecked Sendable {
    // Two threads use the buffer, one after the other: the handler's thread fills it, and the
    // loop's thread empties it.
    private let buffer: OpaquePointer
    let byteCount: Int

    /// The smallest size of a packed body. The loop copies shorter ones.
    private static let least = 64 << 10

    /// Makes a packed body; nil if the body is short, or if there is no memory.
    init?(_ body: [[UInt8]]) {
        byteCount = body.reduce(0) { $0 + $1.count }
        guard byteCount >= Self.least, let buffer = evbuffer_new() else { return nil }
        self.buffer = buffer
        for piece in body { evbuffer_add(buffer, piece, piece.count) }
    }

    deinit {
        evbuffer_free(buffer)
    }

    /// Moves the bytes to the end of another buffer.
    func move(to end: OpaquePointer) {
        evbuffer_add_buffer(end, buffer)
    }
}
