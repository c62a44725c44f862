/// A request that the server has read completely.
public struct HTTPRequest: Sendable {
    /// The method as sent; methods are case-sensitive (RFC 9110 §9.1).
    public var method: String
    /// The path as sent, with its percent-encoding and without the query. It starts with “/”, or is
    /// “*”.
    public var path: String
    /// The text after the first “?”; nil if there is none.
    public var query: String?
    public var headers: HTTPHeaders
    public var body: [UInt8]
    /// The client's numeric address, without a port.
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

    /// Makes a request without its body.
    init(_ head: RequestHead, address: String) {
        self.init(
            method: head.method, path: head.path, query: head.query, headers: head.headers,
            peer: address)
    }

    /// Stops counting the request among those that are being answered. A handler calls this if it
    /// waits long and uses nothing meanwhile, so that it displaces no other request.
    public func stopCounting() async {
        await connection?.releaseRequest()
    }
}
