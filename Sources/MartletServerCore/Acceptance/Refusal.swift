package import MartletModel

/// The reason why a change set is not accepted.
package struct Refusal: Error, Hashable, Sendable {
    package let reason: RefusalReason
    /// A sentence for people, without values.
    package let message: String
    /// The seconds after which the device may send the set again; nil if the verdict is final.
    package let retryAfter: Int64?

    /// Makes a refusal; it is final if `retryAfter` is nil.
    package init(_ reason: RefusalReason, _ message: String, retryAfter: Int64? = nil) {
        self.reason = reason
        self.message = message
        self.retryAfter = retryAfter
    }

    /// True if the same set may be accepted later. The server does not store such a verdict.
    package var isRetryable: Bool { retryAfter != nil }

    /// True if the verdict holds only until the schema changes.
    package var isOfTheSchema: Bool { reason == .unknownType || reason == .unknownAttribute }
}
