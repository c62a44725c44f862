/// Writes an answer's body piece by piece, for as long as its handler needs.
public struct HTTPBodyWriter: Sendable {
    let connection: HTTPConnection

    /// Sends a piece. It returns when the connection has room for more, so a client that reads
    /// slowly delays its writer. The connection keeps at most one piece beyond
    /// `HTTPServerOptions.streamBufferBytes`, and this holds no copy of it while it waits.
    /// - Throws: `HTTPStreamClosed` if the client is gone, or has taken nothing for too long.
    public func write(_ bytes: consuming [UInt8]) async throws {
        try await write(pieces: [consume bytes])
    }

    /// Sends pieces as if they were one, without a copy of all of them.
    /// - Parameter handedOver: Called when the connection has the pieces, before the wait.
    /// - Throws: `HTTPStreamClosed`, like `write(_:)`.
    public func write(
        pieces: consuming [[UInt8]], handedOver: () -> Void = {}
    ) async throws {
        let isFull = try await connection.pushToStream(consume pieces)
        handedOver()
        guard isFull else { return }
        try await connection.flushStream()
    }

    /// Waits until all written bytes have left for the client.
    /// - Throws: `HTTPStreamClosed`, like `write`.
    public func flush() async throws {
        try await connection.flushStream()
    }
}

/// The error of a streamed answer whose client is gone.
public struct HTTPStreamClosed: Error, Hashable, Sendable {
    public init() {}
}
