/// A request that was read whole.
public struct HTTPRequest: Sendable {
    /// The method as sent; methods are case-sensitive (RFC 9110 §9.1).
    public var method: String
    /// The path as sent, percent-encoding kept, without the query. Starts with “/”, or is “*”.
    public var path: String
    /// What follows the first “?”; nil where there is none.
    public var query: String?
    public var headers: HTTPHeaders
    public var body: [UInt8]
    /// The other end's address, numeric, without a port.
    public var peer: String
    /// The connection on which the request arrived, while its handler runs.
    var connection: HTTPConnection?

    public init(
        method: String, path: String, query: String? = nil, headers: HTTPHeaders = HTTPHeaders(),
        body: [UInt8] = [], peer: String = ""
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.peer = peer
    }

    /// A request without its body.
    init(_ head: RequestHead, address: String) {
        self.init(
            method: head.method, path: head.path, query: head.query, headers: head.headers,
            peer: address)
    }

    /// Stops counting the request among those that are being answered. A handler that waits long
    /// and uses nothing meanwhile calls this, so that it keeps out no other request.
    public func stopCounting() async {
        await connection?.releaseRequest()
    }
}
