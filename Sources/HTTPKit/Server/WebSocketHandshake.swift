internal import CLibevent

/// A client's verified request to continue as a WebSocket (RFC 6455 §4).
public struct WebSocketHandshake: Hashable, Sendable {
    /// The value that shows the client that the server understands the protocol.
    let accept: String

    /// The only version of the protocol.
    static let version = "13"

    /// Reads the handshake from a request.
    /// - Returns: Nil if the request does not ask for a WebSocket.
    /// - Throws: `HTTPRefusal` if the request is wrong: status 400, or 426 for another version.
    public init?(_ request: HTTPRequest) throws(HTTPRefusal) {
        let headers = request.headers
        guard Self.names(headers.values("upgrade"), "websocket") else { return nil }
        guard request.method == "GET", request.body.isEmpty,
            Self.names(headers.values("connection"), "upgrade")
        else {
            throw .badRequest("An upgrade to WebSocket is a GET with “Connection: Upgrade”.")
        }
        guard headers.values("sec-websocket-version") == [Self.version] else {
            throw HTTPRefusal(
                status: 426, kind: "upgradeRequired",
                detail: "This server speaks version \(Self.version) of WebSocket.")
        }
        let keys = headers.values("sec-websocket-key")
        guard keys.count == 1, Self.isKey(keys[0]) else {
            throw .badRequest("An upgrade to WebSocket has one key: 16 bytes in base64.")
        }
        accept = Self.accept(keys[0])
    }

    /// Returns whether a list of tokens has a token, regardless of case.
    private static func names(_ values: [String], _ token: String) -> Bool {
        values.contains { value in
            value.split(separator: ",").contains {
                $0.filter { $0 != " " && $0 != "\t" }.lowercased() == token
            }
        }
    }

    private static func isKey(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 24, bytes.suffix(2) == [0x3d, 0x3d] else { return false }
        return bytes.dropLast(2).allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                true
            default: false
            }
        }
    }

    /// Returns the hash of the key and the protocol's constant (§4.2.2). SHA-1 guards no secret
    /// here; it only shows that the server means WebSocket.
    private static func accept(_ key: String) -> String {
        let bytes = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        var digest = [UInt8](repeating: 0, count: Int(SHA_DIGEST_LENGTH))
        SHA1(bytes, bytes.count, &digest)
        var text = [UInt8](repeating: 0, count: 32)
        let count = EVP_EncodeBlock(&text, digest, Int32(digest.count))
        return String(decoding: text.prefix(Int(count)), as: UTF8.self)
    }
}

extension HTTPResponse {
    /// Returns the answer that makes a connection a WebSocket.
    /// - Parameters:
    ///   - maxMessageByteCount: The limit on an incoming message's bytes; `WebSocket.allowMessages`
    ///     changes it.
    ///   - talk: Talks to the client for as long as it needs. When it returns, the server closes
    ///     the WebSocket. Its task is cancelled when the client goes away or the server stops.
    public static func webSocket(
        _ handshake: WebSocketHandshake, maxMessageByteCount: Int,
        _ talk: @escaping @Sendable (WebSocket) async -> Void
    ) -> HTTPResponse {
        var response = HTTPResponse(
            status: 101,
            headers: [
                HTTPField("Upgrade", "websocket"), HTTPField("Connection", "Upgrade"),
                HTTPField("Sec-WebSocket-Accept", handshake.accept),
            ])
        response.webSocket = WebSocketTalk(
            maxMessageByteCount: maxMessageByteCount, talk: talk)
        return response
    }
}

/// The use of a connection after a 101.
struct WebSocketTalk: Sendable {
    let maxMessageByteCount: Int
    let talk: @Sendable (WebSocket) async -> Void
}
