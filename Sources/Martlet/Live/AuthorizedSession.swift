internal import Foundation
internal import Synchronization

/// Performs streaming requests with the token in use, and once more with the next one where the
/// server refuses it.
struct AuthorizedSession: Sendable {
    let session: StreamingSession
    let tokens: TokenKeeper
    private let names = RepeatedNames()

    init(session: StreamingSession, tokens: TokenKeeper) {
        self.session = session
        self.tokens = tokens
    }

    /// As `StreamingSession.start`.
    func start(_ request: StreamingRequest) async throws(TransportFailure) -> StreamingAnswer {
        let token = try await tokens.token()
        let answer = try await answer(to: request, token)
        guard answer.status == 401, !answer.isForeign, let next = try await tokens.replacement(for: token) else {
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
            answer.isForeign =
                names.areExpected(of: request.url)
                && Self.refusals.contains(answer.status)
            return answer
        }
        guard repeated == name else {
            throw TransportFailure(message: DeviceNode.isOfAnother.message)
        }
        names.note(request.url)
        return answer
    }

    /// The statuses with which a server stops a client or changes its course. The others only ask it to
    /// wait; the server says some of those before it knows a request's name.
    private static let refusals = Set(400..<500).subtracting([408, 429])
}

/// The paths for which the server has repeated a request's name.
private final class RepeatedNames: Sendable {
    private let paths = Mutex<Set<String>>([])

    func note(_ url: URL) { paths.withLock { _ = $0.insert(url.path) } }
    func areExpected(of url: URL) -> Bool { paths.withLock { $0.contains(url.path) } }
}
