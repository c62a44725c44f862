internal import MartletModel
public import MartletProtocol

/// A request that was let in: read, and its sender known.
public struct AdmittedRequest: Sendable {
    public let principal: Principal
    public let request: SyncRequest
    /// The bytes the request was read from; `ChangeSet.source` points into them.
    public let source: [UInt8]
    /// Whether the answer may be a gzip member.
    public let acceptsGzip: Bool

    public init(
        principal: Principal, request: SyncRequest, source: [UInt8], acceptsGzip: Bool = false
    ) {
        self.principal = principal
        self.request = request
        self.source = source
        self.acceptsGzip = acceptsGzip
    }

    /// Nothing goes up, only what is missed comes down.
    var isPull: Bool { request.changeSets.isEmpty }
}
