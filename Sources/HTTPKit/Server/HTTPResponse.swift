/// An answer. `Date`, `Content-Length` and `Connection` are added by the server.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var headers: [HTTPField]
    /// The body in pieces, sent one after the other; they need not be joined.
    public var body: [[UInt8]]
    /// Whether the connection is closed after this answer.
    public var closesConnection: Bool
    /// Whether the connection is closed without any answer, as a crash would do.
    public var hangsUp = false
    /// Writes the body in place of `body`, as long as it likes: its pieces go out at once. It is
    /// cancelled when the client goes away or the server stops. A throw breaks the answer off.
    public var stream: (@Sendable (HTTPBodyWriter) async throws -> Void)?
    /// How many bytes `stream` will write, where that is known: the client is told, and an answer
    /// that turns out shorter is broken off.
    public var streamByteCount: Int64?
    /// The party for which the answer counts until the client has taken it; nil if only the address
    /// counts.
    public var party: String?
    /// Something that is let go of when the connection has taken the answer over, or is gone.
    public var attachment: (any Sendable)?
    /// What the connection does once it is a WebSocket; see `webSocket(_:maxMessageByteCount:_:)`.
    var webSocket: WebSocketTalk?
    /// The body, if it was long; `body` is empty then.
    private(set) var packedBody: PackedBody?

    public init(
        status: Int, headers: [HTTPField] = [], body: [[UInt8]] = [],
        closesConnection: Bool = false
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.closesConnection = closesConnection
    }

    /// An answer in plain text.
    public init(status: Int, text: String) {
        self.init(
            status: status, headers: [HTTPField("Content-Type", "text/plain; charset=utf-8")],
            body: [[UInt8](text.utf8)])
    }

    /// The number of bytes of the body.
    public var bodyByteCount: Int {
        packedBody?.byteCount ?? body.reduce(0) { $0 + $1.count }
    }

    /// Copies a long body to where it is sent from.
    mutating func pack() {
        guard let packed = PackedBody(body) else { return }
        packedBody = packed
        body = []
    }
}

extension HTTPRefusal {
    /// Returns the refusal as plain text, for servers that give no form of their own.
    @Sendable public static func plainText(_ refusal: HTTPRefusal) -> HTTPResponse {
        HTTPResponse(status: refusal.status, text: refusal.detail + "\n")
    }
}
