public import MartletModel
internal import MartletProtocol

/// Who sent a change set, and with what knowledge.
public struct SetContext: Sendable {
    public var principal: Principal
    /// The device's number; 0 for a request without a `clientId`.
    public var device: Int64
    /// The revision the device had when the set was made, as far as it says so.
    public var seen: Revision
    /// The request's `maxRevision`.
    public var maxRevision: Revision
    /// The identifier of the set this one waits for.
    public var dependency: String?
    /// Whether an earlier set of the same request was refused and may yet be accepted.
    public var followsRetryable: Bool

    public init(
        principal: Principal, device: Int64, seen: Revision?, maxRevision: Revision,
        dependency: String? = nil, followsRetryable: Bool = false
    ) {
        self.principal = principal
        self.device = device
        self.seen = seen ?? maxRevision
        self.maxRevision = maxRevision
        self.dependency = dependency
        self.followsRetryable = followsRetryable
    }
}
