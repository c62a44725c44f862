internal import Foundation
internal import MartletDevice
internal import Synchronization

/// Performs streaming requests with the token in use, and once more with the next one where the
/// server refuses it.
struct AuthorizedSession: Sendable {
    let session: StreamingSession
    let tokens: TokenKeeper
    private let knowledge = Knowledge()

    init(session: StreamingSession, tokens: TokenKeeper) {
        self.session = session
        self.tokens = tokens
    }

    /// As `StreamingSession.start`.
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

    /// Sends a request under a name of its own, which the server repeats where no cache may answer. So a
    /// proxy that mixes up answers is noticed before anything of the answer is believed. If it has repeated
    /// names before, a refusal without one is another program's.
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

    /// The statuses with which a server stops a client or changes its course. The others only ask it to
    /// wait; the server says some of those before it knows a request's name.
    private static let refusals = Set(400..<500).subtracting([408, 429])

    /// Holds what a session has learnt about the server; all copies of the session share it.
    private final class Knowledge: Sendable {
        /// Whether it has repeated the name of a request.
        let repeatsNames = Mutex(false)
    }
}
