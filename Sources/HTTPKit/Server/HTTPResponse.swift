/// An answer. The server adds `Date`, `Content-Length` and `Connection`.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var headers: [HTTPField]
    /// The body in pieces, which the server sends one after another; the caller need not join them.
    public var body: [[UInt8]]
    /// Whether the server closes the connection after this answer.
    public var closesConnection: Bool
    /// Whether the server closes the connection without any answer, as a crash would.
    public var hangsUp = false
    /// A function that writes the body in place of `body`, for as long as it needs. Its pieces are
    /// sent at once. Its task is cancelled when the client goes away or the server stops. If it
    /// throws, the answer is broken off.
    public var stream: (@Sendable (HTTPBodyWriter) async throws -> Void)?
    /// The number of bytes that `stream` will write, if it is known. The server announces it to the
    /// client, and breaks the answer off if it is shorter.
    public var streamByteCount: Int64?
    /// The party that the answer counts for until the client has taken it; nil if only the address
    /// counts.
    public var party: String?
    /// An object that is released when the connection has taken the answer over, or is gone.
    public var attachment: (any Sendable)?
    /// The work of the connection when it is a WebSocket; see
    /// `webSocket(_:maxMessageByteCount:_:)`.
    var webSocket: WebSocketTalk?
    /// The body if it is long; `body` is then empty.
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

    /// Makes an answer in plain text.
    public init(status: Int, text: String) {
        self.init(
            status: status, headers: [HTTPField("Content-Type", "text/plain; charset=utf-8")],
            body: [[UInt8](text.utf8)])
    }

    /// The number of bytes of the body.
    /// - Complexity: O(*n*) in the number of pieces.
    public var bodyByteCount: Int {
        packedBody?.byteCount ?? body.reduce(0) { $0 + $1.count }
    }

    /// Copies a long body to the buffer that it is sent from.
    mutating func pack() {
        guard let packed = PackedBody(body) else { return }
        packedBody = packed
        body = []
    }
}

extension HTTPRefusal {
    /// Returns the refusal as plain text, for servers without another format.
    @Sendable public static func plainText(_ refusal: HTTPRefusal) -> HTTPResponse {
        HTTPResponse(status: refusal.status, text: refusal.detail + "\n")
    }
}
