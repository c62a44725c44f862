internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

/// The outcome of a request: the answer, and the facts for the log and the metrics.
struct Outcome: Sendable {
    var response: HTTPResponse
    /// The path as the metrics name it; “other” for a path that the server does not have.
    var endpoint = "other"
    /// The problem's kind; “ok” if there is no problem.
    var kind = "ok"
    /// The view for which an answer was made.
    var view = AnsweredView()
    /// The token's identifier, once it is known to be good.
    var token: String?
    var dataSet: String?
    /// The device, by the name that it gives itself.
    var device: String?
    var accepted = 0
    var refused = 0

    /// Notes the token of the request, and counts the answer for its user.
    mutating func note(_ token: TokenRecord) {
        self.token = token.identifier
        dataSet = token.dataSet
        response.party = RequestHandler.party(token)
    }

    init(_ response: HTTPResponse) {
        self.response = response
    }

    init(_ problem: Problem) {
        response = problem.response
        kind = problem.kind
    }

    /// Returns an answer of newly made JSON, compressed if `gzip` is given.
    static func json(_ bytes: [UInt8], gzip: [UInt8]?) -> Outcome {
        var headers = [HTTPField("Content-Type", "application/json"), varies, notStored]
        if gzip != nil { headers.append(HTTPField("Content-Encoding", "gzip")) }
        return Outcome(HTTPResponse(status: 200, headers: headers, body: [gzip ?? bytes]))
    }

    /// The header of an answer that depends on whether the client can inflate.
    static let varies = HTTPField("Vary", "Accept-Encoding")
    /// The header of an answer to one device, which no cache on the way may keep.
    static let notStored = HTTPField("Cache-Control", "no-store")
}
