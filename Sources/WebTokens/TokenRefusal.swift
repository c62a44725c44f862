/// The reason for which a token is refused.
public enum TokenRefusal: String, Error, Hashable, Sendable, CaseIterable {
    /// The token does not have three parts of base64url with JSON in the first two.
    case malformed
    /// The token is longer than `TokenVerifier.longestToken`.
    case tooLong
    /// The token is not signed, or by an algorithm that is not supported.
    case unsupportedAlgorithm
    /// The token names an algorithm that is not its key's.
    case wrongAlgorithm
    /// No key has the name that the token gives.
    case unknownKey
    /// None of the keys made the signature.
    case forged
    /// The token requires an extension that is not supported (`crit`).
    case notUnderstood
    /// The token has no expiry (`exp`).
    case endless
    case expired
    /// The token is not valid yet (`nbf`).
    case notYet
    /// The token is for another recipient (`aud`).
    case wrongAudience
    /// Another issuer made the token (`iss`).
    case wrongIssuer
}

extension TokenRefusal: CustomStringConvertible {
    /// A sentence for the server's log, which contains no part of the token.
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
