/// Writes an answer's body piece by piece, as long as its handler likes.
public struct HTTPBodyWriter: Sendable {
    let connection: HTTPConnection

    /// Sends a piece. Returns as soon as the connection has room for more: a client that reads
    /// slowly holds its writer up, and no more than one piece beyond
    /// `HTTPServerOptions.streamBufferBytes` is kept for it.
    /// - Throws: `HTTPStreamClosed` once the client is gone or has taken nothing for too long.
    public func write(_ bytes: [UInt8]) async throws {
        try await connection.writeStream(bytes)
    }

    /// Returns when everything written has left for the client.
    /// - Throws: `HTTPStreamClosed`, as `write`.
    public func flush() async throws {
        try await connection.flushStream()
    }
}

/// The client of a streamed answer is gone.
public struct HTTPStreamClosed: Error, Hashable, Sendable {
    public init() {}
}
