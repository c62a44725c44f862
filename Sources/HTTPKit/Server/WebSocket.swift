public import WebSocketKit

/// The server's end of a WebSocket, for the code that talks to the client.
public struct WebSocket: Sendable {
    let connection: HTTPConnection

    /// A complete message.
    public enum Message: Hashable, Sendable {
        /// A text in UTF-8.
        case text([UInt8])
        case binary([UInt8])
    }

    /// Waits for the next message. The server reads only a few kilobytes ahead, so a client whose
    /// messages take long to process is slowed down. Only one caller may wait at a time.
    /// - Returns: The message; nil if either end has begun to close the WebSocket.
    public func receive() async -> Message? {
        await connection.nextMessage()
    }

    /// Sends a text message. It returns when there is room for more, so a client that reads slowly
    /// delays its senders. The server keeps at most one message of each sender beyond
    /// `WebSocketOptions.bufferByteCount`, and this holds no copy of the message while it waits.
    /// - Parameters:
    ///   - text: The message in UTF-8.
    ///   - handedOver: Called when the connection has the message, before the wait.
    /// - Throws: `WebSocketClosed` if the WebSocket is closed or closing.
    public func send(
        _ text: consuming [UInt8], handedOver: () -> Void = {}
    ) async throws(WebSocketClosed) {
        let isFull = try await connection.pushMessage(consume text)
        handedOver()
        guard isFull else { return }
        try await connection.awaitRoom()
    }

    /// Begins to close, or does nothing if that has begun. Earlier messages are still sent.
    public func close(_ code: WebSocketCode, _ reason: String) async {
        await connection.closeWebSocket(code, reason)
    }

    /// Changes the limit on a message's bytes for messages that begin from now on, and counts
    /// messages towards the share of `party` as well.
    public func allowMessages(upTo byteCount: Int, of party: String) async {
        await connection.allowMessages(upTo: byteCount, of: party)
    }
}

/// The error of a WebSocket that is closed or closing.
public struct WebSocketClosed: Error, Hashable, Sendable {
    public init() {}
}
