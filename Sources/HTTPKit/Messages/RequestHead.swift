/// The verified contents of a request's head.
struct RequestHead: Sendable {
    var method: String
    var path: String
    var query: String?
    var headers: HTTPHeaders
    var framing: Framing
    var expectsContinue: Bool
    var keepsAlive: Bool
    /// Whether the client understands chunked answers.
    var isVersion1_1: Bool

    /// The way in which the body is delimited.
    enum Framing: Hashable, Sendable {
        case length(Int)
        case chunked
    }
}
