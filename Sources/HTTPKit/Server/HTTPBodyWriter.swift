/// Writes an answer's body piece by piece, for as long as its handler needs.
public struct HTTPBodyWriter: Sendable {
    let connection: HTTPConnection

    /// Sends a piece. It returns when the connection has room for more, so a client that reads
    /// slowly delays its writer. The connection keeps at most one piece beyond
    /// `HTTPServerOptions.streamBufferBytes`.
    /// - Throws: `HTTPStreamClosed` if the client is gone, or has taken nothing for too long.
    public func write(_ bytes: [UInt8]) async throws {
        try await connection.writeStream(bytes)
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
