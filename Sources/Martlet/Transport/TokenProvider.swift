internal import Foundation

/// Gives the token that requests go out with: asked before the first one where none is known, and
/// again when the server refuses the one in use.
///
/// - Parameter refused: The token the server has refused; nil where there was none yet.
/// - Returns: The token to go on with. Nil, or the refused one again: there is no better one now, a
///   person has to sign in.
/// - Throws: What keeps it from saying; the request then counts as failed on the way, and is tried
///   again later.
public typealias TokenProvider = @Sendable (_ refused: String?) async throws -> String?

/// A transport whose token can be changed while it is in use.
public protocol TokenTransport: Transport {
    /// Requests go out with this token from now on, nil: with none.
    func setToken(_ token: String?) async
}

/// The token in use, and where the next one comes from.
actor TokenKeeper {
    private var current: String?
    private let provider: TokenProvider?
    /// The provider is asked once, however many requests were refused meanwhile.
    private var renewal: Task<Result<String?, TransportFailure>, Never>?
    /// Counts the tokens set from outside, which count more than what a provider says late.
    private var generation = 0

    init(_ token: String?, provider: TokenProvider?) {
        current = token
        self.provider = provider
    }

    func set(_ token: String?) {
        generation += 1
        current = token
    }

    /// The token in use; asks for one where there is none.
    func token() async throws(TransportFailure) -> String? {
        if current == nil, provider != nil { return try await renewed(after: nil) }
        return current
    }

    /// What to use in place of a refused token; nil where there is nothing better.
    func replacement(for refused: String?) async throws(TransportFailure) -> String? {
        if current == refused, provider != nil { _ = try await renewed(after: refused) }
        return current == refused ? nil : current
    }

    private func renewed(after refused: String?) async throws(TransportFailure) -> String? {
        guard let provider else { return current }
        let asked: Task<Result<String?, TransportFailure>, Never>
        let begun = generation
        if let renewal {
            asked = renewal
        } else {
            asked = Task {
                do {
                    return .success(try await provider(refused))
                } catch {
                    return .failure(
                        TransportFailure(
                            message: "The app could not get a token: \(error.localizedDescription)"
                        ))
                }
            }
            renewal = asked
        }
        let result = await asked.value
        if renewal == asked { renewal = nil }
        let token = try result.get()
        if generation == begun, let token { current = token }
        return current
    }
}
