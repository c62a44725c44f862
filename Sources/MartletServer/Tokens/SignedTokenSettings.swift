/// The settings for the tokens of an issuer (JWT).
public struct SignedTokenSettings: Hashable, Sendable {
    /// The path of the keys: a public key as PEM, or a JWK Set. The server reads it again when it
    /// changes.
    public var keyFile: String
    /// The text that a token's `aud` must contain; nil accepts tokens for any audience.
    public var audience: String?
    /// The text that a token's `iss` must be; nil accepts every issuer that has a key.
    public var issuer: String?
    /// The seconds by which the issuer's clock and this one may differ; at least 0.
    public var leeway: Int64 = 60

    /// Makes settings that accept every audience and issuer.
    public init(keyFile: String) {
        self.keyFile = keyFile
    }
}
