internal import Foundation

/// Performs streaming requests with the token in use, and once more with the next one where the
/// server refuses it.
struct AuthorizedSession: Sendable {
    let session: StreamingSession
    let tokens: TokenKeeper

    /// As `StreamingSession.start`.
    func start(_ request: StreamingRequest) async throws(TransportFailure) -> StreamingAnswer {
        let token = try await tokens.token()
        let answer = try await session.start(Self.request(request, token))
        guard answer.status == 401, let next = try await tokens.replacement(for: token) else {
            return answer
        }
        return try await session.start(Self.request(request, next))
    }

    private static func request(
        _ request: StreamingRequest, _ token: String?
    ) -> StreamingRequest {
        var request = request
        if let token { request.headers["Authorization"] = "Bearer \(token)" }
        return request
    }
}
