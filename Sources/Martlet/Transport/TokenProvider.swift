internal import Foundation

/// Returns the token for requests. It is called before the first request if no token is known, and
/// again when the server refuses the current one.
///
/// - Parameter refused: The token that the server has refused; nil if there was none yet.
/// - Returns: The token to continue with. Nil, or the refused one again, means that there is no
///   better one now, and a person must sign in.
/// - Throws: The reason why it cannot answer. The request then counts as failed on the way, and is
///   repeated later.
public typealias TokenProvider = @Sendable (_ refused: String?) async throws -> String?

/// A transport whose token can be changed while it is in use.
package protocol TokenTransport: Transport {
    /// Sets the token that requests use from now on; with nil they use none.
    func setToken(_ token: String?) async
}

/// The current token, and the source of the next one.
actor TokenKeeper {
    private var current: String?
    private let provider: TokenProvider?
    /// The running call of the provider; it is called once for all requests refused meanwhile.
    private var renewal: Task<Result<String?, TransportFailure>, Never>?
    /// The number of tokens set by the app, which take precedence over a late answer of the
    /// provider.
    private var generation = 0

    init(_ token: String?, provider: TokenProvider?) {
        current = token
        self.provider = provider
    }

    func set(_ token: String?) {
        generation += 1
        current = token
    }

    /// Returns the current token; asks the provider if there is none.
    func token() async throws(TransportFailure) -> String? {
        if current == nil, provider != nil { return try await renewed(after: nil) }
        return current
    }

    /// Returns the token to use in place of a refused one; nil if there is no better one.
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
