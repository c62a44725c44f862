/// A request to a server.
public struct CurlRequest: Sendable {
    public var method: String
    /// The address, which starts with `http` or `https`.
    public var url: String
    public var headers: [(name: String, value: String)] = []
    public var body: [UInt8]?
    /// Whether the server may compress the answer. The receiver gets it inflated.
    public var inflates = false

    public init(method: String, url: String) {
        self.method = method
        self.url = url
    }
}

/// Receives the answer to one request. The session's thread makes one call at a time, so a call
/// must not block.
public protocol CurlReceiver: AnyObject, Sendable {
    /// Receives the head of the answer, once, before any of its body.
    /// - Parameter headers: Field names in lower case; if a field comes twice, its last value.
    func receive(status: Int, headers: [String: String])
    /// - Returns: False to hold the connection up. The same bytes are delivered again after `goOn`.
    func receive(_ bytes: [UInt8]) -> Bool
    /// Receives the number of bytes of the request's body that have reached the other end's system.
    /// Called after `look`.
    func sent(_ bytes: Int64)
    /// Ends the request; no call follows. `error` is nil if the answer is complete.
    func ended(_ error: CurlError?)
}

/// The reason why no complete answer was received.
public struct CurlError: Error, Hashable, Sendable {
    /// The message of libcurl: a sentence without a full stop.
    public let message: String
    /// Whether the other end failed to prove by a certificate that it is the server.
    public let isUntrusted: Bool
}
