public import MartletModel

/// The reason why a change set is not accepted.
public struct Refusal: Error, Hashable, Sendable {
    public let reason: RefusalReason
    /// A sentence for people, without values.
    public let message: String
    /// The seconds after which the device may send the set again; nil if the verdict is final.
    public let retryAfter: Int64?

    /// Makes a refusal; it is final if `retryAfter` is nil.
    public init(_ reason: RefusalReason, _ message: String, retryAfter: Int64? = nil) {
        self.reason = reason
        self.message = message
        self.retryAfter = retryAfter
    }

    /// True if the same set may be accepted later. The server does not store such a verdict.
    public var isRetryable: Bool { retryAfter != nil }

    /// True if the verdict holds only until the schema changes.
    public var isOfTheSchema: Bool { reason == .unknownType || reason == .unknownAttribute }
}
