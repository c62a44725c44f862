internal import MartletModel
internal import MartletProtocol
internal import WebTokens

/// The reason why a request is not authenticated.
struct TokenDenial: Error {
    enum Reason {
        /// There is no token, or none that the server knows.
        case unknown
        /// The token is an issuer's and is not good.
        case refused(TokenRefusal)
        /// The token is good, but does not name its data set or its user.
        case incompleteClaims
    }

    let reason: Reason

    init(_ reason: Reason) {
        self.reason = reason
    }

    /// The answer, with status 401. It reveals nothing about the token, the keys or the expected
    /// claims.
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
