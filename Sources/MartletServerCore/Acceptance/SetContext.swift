package import MartletModel
internal import MartletProtocol

/// The sender of a change set, and the state that the device had seen.
package struct SetContext: Sendable {
    package var principal: Principal
    /// The device's number; 0 for a request without a `clientId`.
    package var device: Int64
    /// The device's revision when the set was made, or `maxRevision` if the device does not say.
    package var seen: Revision
    /// The request's `maxRevision`.
    package var maxRevision: Revision
    /// The identifier of the set that this one depends on.
    package var dependency: String?
    /// True if an earlier set of the same request was refused and may yet be accepted.
    package var followsRetryable: Bool

    package init(
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
