/// What the head of a request says, checked.
struct RequestHead: Sendable {
    var method: String
    var path: String
    var query: String?
    var headers: HTTPHeaders
    var framing: Framing
    var expectsContinue: Bool
    var keepsAlive: Bool
    /// Whether the client reads chunked answers.
    var isVersion1_1: Bool

    /// How the body is delimited.
    enum Framing: Hashable, Sendable {
        case length(Int)
        case chunked
    }
}
