/// A request the server itself turns away, before any handler sees it.
public struct HTTPRefusal: Error, Hashable, Sendable {
    public var status: Int
    /// A stable word: `badRequest`, `timeout`, `tooLarge`, `headTooLarge`, `expectation`,
    /// `tooManyConnections`, `busy`, `notImplemented`, `httpVersion`.
    public var kind: String
    /// A sentence: what was expected, what was found.
    public var detail: String
    /// Seconds to wait where waiting helps.
    public var retryAfterSeconds: Int?

    public init(status: Int, kind: String, detail: String, retryAfterSeconds: Int? = nil) {
        self.status = status
        self.kind = kind
        self.detail = detail
        self.retryAfterSeconds = retryAfterSeconds
    }

    static func badRequest(_ detail: String) -> HTTPRefusal {
        HTTPRefusal(status: 400, kind: "badRequest", detail: detail)
    }
}
