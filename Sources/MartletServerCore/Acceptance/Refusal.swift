public import MartletModel

/// Why a change set is not accepted.
public struct Refusal: Error, Hashable, Sendable {
    public let reason: RefusalReason
    /// A sentence for people, without values.
    public let message: String
    /// Seconds after which the set may be sent again; nil when the verdict is final.
    public let retryAfter: Int64?

    public init(_ reason: RefusalReason, _ message: String, retryAfter: Int64? = nil) {
        self.reason = reason
        self.message = message
        self.retryAfter = retryAfter
    }

    /// Whether sending the same set again may end otherwise; such a verdict is not remembered.
    public var isRetryable: Bool { retryAfter != nil }

    /// Whether the verdict holds only as long as the schema is what it was.
    public var isOfTheSchema: Bool { reason == .unknownType || reason == .unknownAttribute }
}
