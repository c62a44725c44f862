public import MartletModel
internal import MartletProtocol

/// The sender of a change set, and the state that the device had seen.
public struct SetContext: Sendable {
    public var principal: Principal
    /// The device's number; 0 for a request without a `clientId`.
    public var device: Int64
    /// The device's revision when the set was made, or `maxRevision` if the device does not say.
    public var seen: Revision
    /// The request's `maxRevision`.
    public var maxRevision: Revision
    /// The identifier of the set that this one depends on.
    public var dependency: String?
    /// True if an earlier set of the same request was refused and may yet be accepted.
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
