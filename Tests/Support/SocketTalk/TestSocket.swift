package import WebSocketKit

/// A WebSocket client over any transport: it shakes hands, keeps the frames apart, and can send
/// whatever bytes a test likes.
package actor TestSocket {
    private let session = WebSocketSession(
        role: .client(mask: { [9, 8, 7, 6] }), maxMessageByteCount: 64 << 20)
    private let write: @Sendable ([UInt8]) async -> Void
    private let read: @Sendable () async -> [UInt8]
    private var events: [WebSocketSession.Event] = []

    /// The key the client sends, and what the server must make of it (RFC 6455 §1.3).
    package static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    package static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    /// - Parameters:
    ///   - write: Sends bytes.
    ///   - read: Waits for some bytes; none at the end of the stream.
    package init(
        write: @escaping @Sendable ([UInt8]) async -> Void,
        read: @escaping @Sendable () async -> [UInt8]
    ) {
        self.write = write
        self.read = read
    }

    /// One over a connection of its own.
    package init(_ client: RawClient) {
        self.init(
            write: { await client.send($0) }, read: { await client.read(atLeast: 1) })
    }

    /// A request to upgrade, with header lines of the caller's choice.
    package static func request(_ target: String, _ headers: [String] = []) -> String {
        """
        GET \(target) HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
        Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: \(key)\r\n\(headers.map { $0 + "\r\n" }.joined())\r\n
        """
    }

    /// Asks for an upgrade.
    /// - Returns: The head of the answer, or what came of it.
    package func open(_ target: String, _ headers: [String] = []) async -> String {
        await write(Array(Self.request(target, headers).utf8))
        var head: [UInt8] = []
        while true {
            if let end = Self.end(of: head) {
                events += session.receive(Array(head[end...]))
                return String(decoding: head[..<end], as: UTF8.self)
            }
            let part = await read()
            guard !part.isEmpty else { return String(decoding: head, as: UTF8.self) }
            head += part
        }
    }

    private static func end(of head: [UInt8]) -> Int? {
        let mark: [UInt8] = [13, 10, 13, 10]
        return head.indices.first { head[$0...].starts(with: mark) }.map { $0 + 4 }
    }

    /// Sends bytes as they are.
    package func send(_ bytes: [UInt8]) async {
        await write(bytes)
    }

    /// Sends a text message.
    package func say(_ text: String) async {
        session.send(text: Array(text.utf8))
        await write(session.takeOutput())
    }

    /// Says goodbye.
    package func close(_ code: WebSocketCode) async {
        session.close(code, "")
        await write(session.takeOutput())
    }

    /// What the server says next; pings are answered. Nil at the end of the stream.
    package func next() async -> WebSocketSession.Event? {
        while events.isEmpty {
            let part = await read()
            guard !part.isEmpty else { return nil }
            events += session.receive(part)
            let answer = session.takeOutput()
            if !answer.isEmpty { await write(answer) }
        }
        return events.removeFirst()
    }

    /// The next message's text; nil where something else came.
    package func text() async -> String? {
        while let event = await next() {
            switch event {
            case .text(let text): return String(decoding: text, as: UTF8.self)
            case .ping, .pong: continue
            case .binary, .close: return nil
            }
        }
        return nil
    }

    /// The code the server closes with, whatever comes before it; nil where it names none.
    package func closeCode() async -> WebSocketCode? {
        while let event = await next() {
            if case .close(let code, _) = event { return code }
        }
        return nil
    }

    /// Whether the server has closed the connection, whatever comes before that.
    package func isEnded() async -> Bool {
        while await next() != nil {}
        return true
    }
}
