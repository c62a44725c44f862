internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

extension RequestHandler {
    /// Decides from a request's head whether to wait for its body.
    ///
    /// Only a device with a good token may send a body, and only to `POST /sync`. A waiting request
    /// counts towards its user's share.
    func admission(of request: HTTPRequest) async -> HTTPAdmission {
        var outcome: Outcome
        if request.path == "/sync", request.method == "POST" {
            do {
                return .admitted(party: Self.party(try await admitted(request)))
            } catch {
                outcome = failed(error)
            }
            outcome.endpoint = request.path
        } else {
            outcome = Outcome(Problem.tooLarge("This address takes no body."))
        }
        note(outcome, requestByteCount: 0, .zero)
        return .refused(Self.guarded(outcome.response, request))
    }

    /// Returns the party whose share a token's requests count towards.
    static func party(_ token: TokenRecord) -> String {
        "\(token.dataSet)/\(token.principal.identity)"
    }

    /// Adds the headers that every answer has. On paths for which no cache may answer, it also adds
    /// the name that the client gave the request.
    static func guarded(_ response: HTTPResponse, _ request: HTTPRequest) -> HTTPResponse {
        var response = response
        response.headers.append(HTTPField("X-Content-Type-Options", "nosniff"))
        if ["/sync", "/deltas"].contains(request.path),
            let name = request.headers["martlet-request"], name.utf8.count <= Limits.nameBytes
        {
            response.headers.append(HTTPField("Martlet-Request", name))
        }
        return response
    }
}
