internal import CLibevent

/// A long body, copied to where libevent sends it from.
///
/// The copying takes place on the thread of the handler. On the loop all connections would wait for it, and
/// bodies that wait for the loop would fill the memory.
final class PackedBody: @unchecked Sendable {
    // One thread after the other uses it: the handler's makes it, and the loop's empties it.
    private let buffer: OpaquePointer
    let byteCount: Int

    /// Shorter bodies are copied on the loop.
    private static let least = 64 << 10

    /// Returns nil if the body is short, or memory is.
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
