internal import MartletModel
internal import MartletProtocol
internal import WebTokens

/// Why nobody comes in.
struct TokenDenial: Error {
    enum Reason {
        /// No token, or none that is known here.
        case unknown
        /// An issuer's token that is not good.
        case refused(TokenRefusal)
        /// A good token that does not say for what, or for whom, it is.
        case incompleteClaims
    }

    let reason: Reason

    init(_ reason: Reason) {
        self.reason = reason
    }

    /// The answer, with status 401. Nothing of the token, of the keys or of what was expected is in
    /// it.
    var problem: Problem {
        guard case .unknown = reason else {
            let (kind, detail) = words
            return Problem(status: 401, kind: kind, detail: detail)
        }
        return .unauthorized
    }

    private var words: (kind: String, detail: String) {
        switch reason {
        case .unknown: ("unauthorized", "A good token is needed.")
        case .incompleteClaims:
            (
                "tokenClaims",
                "The token needs the claims “dataset” and “sub”, and “roles” as a list of texts."
            )
        case .refused(let refusal):
            switch refusal {
            case .malformed, .tooLong, .notUnderstood:
                ("tokenMalformed", "The token is not a JWT that can be read here.")
            case .unsupportedAlgorithm, .wrongAlgorithm:
                ("tokenAlgorithm", "The token is signed by no method that is accepted here.")
            case .unknownKey: ("tokenKey", "The token names a key that is not known here.")
            case .forged: ("tokenForged", "The token's signature is not right.")
            case .endless: ("tokenClaims", "The token does not say when it ends (“exp”).")
            case .expired: ("tokenExpired", "The token has expired; get a new one.")
            case .notYet: ("tokenNotYet", "The token's time has not come; check the clocks.")
            case .wrongAudience: ("tokenAudience", "The token is for another service.")
            case .wrongIssuer: ("tokenIssuer", "The token is of another issuer.")
            }
        }
    }
}
