internal import HTTPKit
internal import MartletModel
internal import MartletProtocol

/// What a request came to: the answer, and what the log and the metrics are told of it.
struct Outcome: Sendable {
    var response: HTTPResponse
    /// The address as the metrics name it; “other” for addresses that are not ours.
    var endpoint = "other"
    /// A problem's kind; “ok” without one.
    var kind = "ok"
    /// The token's identifier, once it is known to be good.
    var token: String?
    var dataSet: String?
    /// The device, as it names itself.
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

    /// An answer in JSON made anew, compressed where that helps.
    static func json(_ bytes: [UInt8], gzip: [UInt8]?) -> Outcome {
        var headers = [HTTPField("Content-Type", "application/json"), varies, notStored]
        if gzip != nil { headers.append(HTTPField("Content-Encoding", "gzip")) }
        return Outcome(HTTPResponse(status: 200, headers: headers, body: [gzip ?? bytes]))
    }

    /// The answer depends on what the client can inflate.
    static let varies = HTTPField("Vary", "Accept-Encoding")
    /// Answers are one device's; nothing between may keep them.
    static let notStored = HTTPField("Cache-Control", "no-store")
}
