/// How the tokens of an issuer (JWT) are judged.
public struct SignedTokenSettings: Hashable, Sendable {
    /// The keys: a public key as PEM, or a JWK Set. Read again when the file changes.
    public var keyFile: String
    /// What a token's `aud` must contain; nil accepts tokens for anybody.
    public var audience: String?
    /// What a token's `iss` must be; nil accepts whoever has a key.
    public var issuer: String?
    /// Seconds by which the issuer's clock and this one may differ; at least 0.
    public var leeway: Int64 = 60

    public init(keyFile: String) {
        self.keyFile = keyFile
    }
}
