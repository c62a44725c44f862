/// The body of an answer that is an error: `application/problem+json` (RFC 9457).
public struct Problem: Error, Hashable, Sendable {
    /// The HTTP status.
    public var status: Int
    /// A stable word for programs, such as `unauthorized` or `tooLarge`.
    public var kind: String
    /// A sentence for people: what was expected, what was found, what to do.
    public var detail: String
    /// The seconds to wait, if waiting helps.
    public var retryAfter: Int64?

    public init(status: Int, kind: String, detail: String, retryAfter: Int64? = nil) {
        self.status = status
        self.kind = kind
        self.detail = detail
        self.retryAfter = retryAfter
    }
}
