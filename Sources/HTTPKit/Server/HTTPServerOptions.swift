/// The address and the limits of a server.
public struct HTTPServerOptions: Sendable {
    /// The address to listen on, a name or a number.
    public var host = "127.0.0.1"
    /// The port; 0 takes a free one.
    public var port = 0
    /// The most bytes of a request's body as sent. The server answers 413 to a longer one.
    public var maxBodyBytes = 16 << 20
    /// The most bytes of a request's head. The server answers 431 to a longer one.
    public var maxHeadBytes = 16 << 10
    /// The time from a head's first byte (or a new connection) to its last byte. The server then
    /// answers 408.
    public var headDeadline = Duration.seconds(10)
    /// The time from the head to the body's last byte. The server then answers 408.
    public var bodyDeadline = Duration.seconds(120)
    /// The time that a connection may stay open between requests, and that a client may take no
    /// byte of an answer.
    public var idleTimeout = Duration.seconds(75)
    /// The bytes of a streamed answer that the server keeps for a slow client before the writer
    /// waits.
    public var streamBufferBytes = 64 << 10
    /// The most open connections. The server answers 503 to one more, and closes it. The default
    /// has room for 10,000 listeners and other requests. If the process may have fewer files open,
    /// the server takes fewer.
    public var maxConnections = 12_000
    /// Returns the number of open files that are not connections, such as those of databases. The
    /// server leaves room for them. It calls this for each new connection.
    public var otherFiles: @Sendable () -> Int = { 256 }
    /// The most open connections from one address. The server answers 429 to one more, and closes
    /// it.
    public var maxConnectionsPerAddress = 1_000
    /// The addresses that `maxConnectionsPerAddress` does not count, such as a proxy in front.
    public var addressesWithoutLimit: Set<String> = []
    /// The most requests whose answers are not written yet. The server answers 503 to one more.
    public var maxRequestsInFlight = 4_096
    /// The most bytes of the bodies of those requests. The server answers 503 if there are more.
    public var maxBodyBytesInFlight = 256 << 20
    /// The most bytes of answers that clients have not taken yet. If there are more, the server
    /// closes connections: always the slowest client of the party for which most bytes wait.
    public var maxWaitingBytes = 256 << 20
    /// The seconds after which a client may return, in answers with 429 or 503.
    public var retryAfterSeconds = 2
    public var webSocket = WebSocketOptions()
    /// The TLS files in PEM; nil for plain HTTP.
    public var tls: TLSFiles?
    /// Makes the answer to a request that the server itself refuses.
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
