/// A refusal of a request by the server itself, before a handler sees the request.
public struct HTTPRefusal: Error, Hashable, Sendable {
    public var status: Int
    /// A stable word: `badRequest`, `timeout`, `tooLarge`, `headTooLarge`, `expectation`,
    /// `tooManyConnections`, `busy`, `notImplemented`, `httpVersion`.
    public var kind: String
    /// A sentence that says what the server expected and what it found.
    public var detail: String
    /// The seconds to wait before a retry; nil if waiting does not help.
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
