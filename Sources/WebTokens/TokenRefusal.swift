/// Why a token is not good.
public enum TokenRefusal: String, Error, Hashable, Sendable, CaseIterable {
    /// Not three parts of base64url with JSON in the first two.
    case malformed
    /// Longer than any token here is.
    case tooLong
    /// Signed with nothing, or by a method that is not offered here.
    case unsupportedAlgorithm
    /// The token says a method that its key is not for.
    case wrongAlgorithm
    /// No key has the name the token gives.
    case unknownKey
    /// No key of ours made the signature.
    case forged
    /// It says that something must be understood which is not understood here (`crit`).
    case notUnderstood
    /// It names no moment at which it ends (`exp`).
    case endless
    case expired
    /// Its time has not come (`nbf`).
    case notYet
    /// It is for somebody else (`aud`).
    case wrongAudience
    /// Somebody else made it (`iss`).
    case wrongIssuer
}

extension TokenRefusal: CustomStringConvertible {
    /// A sentence for the server's log; nothing of the token is in it.
    public var description: String {
        switch self {
        case .malformed: "The token is not three parts of base64url with JSON objects in them."
        case .tooLong: "The token is longer than \(TokenVerifier.longestToken) bytes."
        case .unsupportedAlgorithm: "The token's “alg” is none of EdDSA, RS256 and HS256."
        case .wrongAlgorithm: "The token's “alg” is not the one its key is for."
        case .unknownKey: "No key has the token's “kid”; has the issuer a new one?"
        case .forged: "None of the keys made the token's signature."
        case .notUnderstood: "The token has a “crit” header, which nothing here understands."
        case .endless: "The token has no “exp”; the issuer must say when it ends."
        case .expired: "The token has expired; get a new one."
        case .notYet: "The token's “nbf” has not come; are the clocks right?"
        case .wrongAudience: "The token's “aud” is not this server."
        case .wrongIssuer: "The token's “iss” is not the issuer expected."
        }
    }
}
