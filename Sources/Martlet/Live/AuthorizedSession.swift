internal import Foundation

/// Performs streaming requests with the token in use, and once more with the next one where the
/// server refuses it.
struct AuthorizedSession: Sendable {
    let session: StreamingSession
    let tokens: TokenKeeper

    /// As `StreamingSession.start`.
    func start(_ request: StreamingRequest) async throws(TransportFailure) -> StreamingAnswer {
        let token = try await tokens.token()
        let answer = try await answer(to: request, token)
        guard answer.status == 401, let next = try await tokens.replacement(for: token) else {
            return answer
        }
        return try await self.answer(to: request, next)
    }

    /// Sends a request under a name of its own, which the server repeats where no cache may answer. So a
    /// proxy that mixes up answers is noticed before anything of the answer is believed.
    private func answer(
        to request: StreamingRequest, _ token: String?
    ) async throws(TransportFailure) -> StreamingAnswer {
        var request = request
        if let token { request.headers["Authorization"] = "Bearer \(token)" }
        let name = UUID().uuidString
        request.headers["Martlet-Request"] = name
        let answer = try await session.start(request)
        guard answer.headers["martlet-request"] ?? name == name else {
            throw TransportFailure(message: DeviceNode.isOfAnother.message)
        }
        return answer
    }
}
