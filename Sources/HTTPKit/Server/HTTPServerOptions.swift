/// How a server listens and what it puts up with.
public struct HTTPServerOptions: Sendable {
    /// The address to listen on, a name or a number.
    public var host = "127.0.0.1"
    /// 0 takes a free port.
    public var port = 0
    /// Bytes of a request's body as sent; more is answered 413.
    public var maxBodyBytes = 16 << 20
    /// Bytes of a request's head; more is answered 431.
    public var maxHeadBytes = 16 << 10
    /// From a head's first byte (or a new connection) to its last; then 408.
    public var headDeadline = Duration.seconds(10)
    /// From the head to the body's last byte; then 408.
    public var bodyDeadline = Duration.seconds(120)
    /// How long a connection may stand open between requests, and how long a client may take
    /// nothing of an answer.
    public var idleTimeout = Duration.seconds(75)
    /// Bytes of a streamed answer kept for a client that reads slowly, before its writer waits.
    public var streamBufferBytes = 64 << 10
    /// Open connections; one more is answered 503 and closed. Room for 10,000 listeners, and
    /// requests beside them; a process that may have fewer files open takes fewer.
    public var maxConnections = 12_000
    /// Returns the number of open files that are not connections, such as those of databases.
    /// Connections leave room for them. Called for each new connection.
    public var otherFiles: @Sendable () -> Int = { 256 }
    /// Open connections from one address; one more is answered 429 and closed.
    public var maxConnectionsPerAddress = 1_000
    /// Addresses `maxConnectionsPerAddress` does not count: a proxy in front.
    public var addressesWithoutLimit: Set<String> = []
    /// Requests whose answers are not written yet; one more is answered 503.
    public var maxRequestsInFlight = 4_096
    /// Bytes of the bodies of those requests; more is answered 503.
    public var maxBodyBytesInFlight = 256 << 20
    /// Bytes of answers that clients have not taken yet. If there are more, the slowest clients of
    /// the party for which most waits lose their connections.
    public var maxWaitingBytes = 256 << 20
    /// What a 429 or 503 says of when to come back.
    public var retryAfterSeconds = 2
    public var webSocket = WebSocketOptions()
    /// Files in PEM; nil for plain HTTP.
    public var tls: TLSFiles?
    /// The form of an answer the server itself gives, to a request no handler saw.
    public var refusal: @Sendable (HTTPRefusal) -> HTTPResponse = HTTPRefusal.plainText

    public init() {}

    /// The certificate chain and the private key of a server.
    public struct TLSFiles: Hashable, Sendable {
        public var certificatePath: String
        public var keyPath: String

        public init(certificatePath: String, keyPath: String) {
            self.certificatePath = certificatePath
            self.keyPath = keyPath
        }
    }
}
