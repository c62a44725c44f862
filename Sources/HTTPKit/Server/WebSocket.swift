public import WebSocketKit

/// The server's end of a WebSocket, for the one who talks to the client.
public struct WebSocket: Sendable {
    let connection: HTTPConnection

    /// A whole message.
    public enum Message: Hashable, Sendable {
        /// UTF-8.
        case text([UInt8])
        case binary([UInt8])
    }

    /// Waits for the next message. Nothing is read ahead of it but a few kilobytes: a client whose
    /// messages take long is held up. One caller at a time.
    /// - Returns: Nil once the WebSocket is closed or closing, by whichever end.
    public func receive() async -> Message? {
        await connection.nextMessage()
    }

    /// Sends a text message. Returns as soon as there is room for more: a client that reads slowly
    /// holds up those who send to it, and no more than one message of each of them beyond
    /// `WebSocketOptions.bufferByteCount` is kept for it.
    /// - Parameter text: UTF-8.
    /// - Throws: `WebSocketClosed` once the WebSocket is closed or closing.
    public func send(_ text: [UInt8]) async throws(WebSocketClosed) {
        try await connection.sendMessage(text)
    }

    /// Begins to close, or does nothing where that has begun. What was sent before still goes out.
    public func close(_ code: WebSocketCode, _ reason: String) async {
        await connection.closeWebSocket(code, reason)
    }

    /// Changes the limit on a message's bytes for messages that begin from now on, and counts
    /// messages towards the share of `party` as well.
    public func allowMessages(upTo byteCount: Int, of party: String) async {
        await connection.allowMessages(upTo: byteCount, of: party)
    }
}

/// The WebSocket is closed, or about to be.
public struct WebSocketClosed: Error, Hashable, Sendable {
    public init() {}
}
