internal import Foundation
internal import MartletDevice
internal import Synchronization

/// Performs streaming requests with the current token. If the server refuses the token, it performs
/// the request once more with the next one.
struct AuthorizedSession: Sendable {
    let session: StreamingSession
    let tokens: TokenKeeper
    private let knowledge = Knowledge()

    init(session: StreamingSession, tokens: TokenKeeper) {
        self.session = session
        self.tokens = tokens
    }

    /// Sends a request, as `StreamingSession.start` does.
    func start(_ request: StreamingRequest) async throws(TransportFailure) -> StreamingAnswer {
        let token = try await tokens.token()
        let answer = try await answer(to: request, token)
        guard answer.status == 401, !answer.isOfStranger,
            let next = try await tokens.replacement(for: token)
        else {
            return answer
        }
        return try await self.answer(to: request, next)
    }

    /// Sends a request under a unique name. The server repeats the name in answers that no cache
    /// may give, so the device notices a proxy that mixes up answers before it uses any part of the
    /// answer. If the server has repeated names before, a refusal without one comes from another
    /// program.
    private func answer(
        to request: StreamingRequest, _ token: String?
    ) async throws(TransportFailure) -> StreamingAnswer {
        var request = request
        if let token { request.headers["Authorization"] = "Bearer \(token)" }
        let name = UUID().uuidString
        request.headers["Martlet-Request"] = name
        var answer = try await session.start(request)
        guard let repeated = answer.headers["martlet-request"] else {
            answer.isOfStranger =
                knowledge.repeatsNames.withLock(\.self)
                && Self.repeating.contains(request.url.lastPathComponent)
                && Self.refusals.contains(answer.status)
            return answer
        }
        guard repeated == name else {
            throw TransportFailure(message: DeviceNode.isOfAnother.message)
        }
        knowledge.repeatsNames.withLock { $0 = true }
        return answer
    }

    /// The endpoints whose answers repeat names.
    private static let repeating: Set = ["sync", "deltas"]

    /// The statuses with which a server stops a client or changes its course. Other statuses only
    /// ask it to wait, and the server sends some of those before it has read a request's name.
    private static let refusals = Set(400..<500).subtracting([408, 429])

    /// The facts that a session has learnt about the server; all copies of the session share them.
    private final class Knowledge: Sendable {
        /// Whether the server has repeated the name of a request.
        let repeatsNames = Mutex(false)
    }
}
