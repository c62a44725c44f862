internal import MartletModel
internal import MartletProtocol

/// Verifies signed tokens (JWT, RFC 7519, in the compact form of RFC 7515).
///
/// The key decides the algorithm, and never the token. If a token names another algorithm than its
/// key's, it is refused (RFC 8725, section 3.1).
public struct TokenVerifier: Sendable {
    /// The maximum number of bytes of a token. Longer tokens are refused unread.
    public static let longestToken = 8_192

    private let keys: TokenKeys
    private let audience: String?
    private let issuer: String?
    private let leeway: Int64

    /// - Parameters:
    ///   - audience: The text that a token's `aud` must contain; nil to accept any.
    ///   - issuer: The text that a token's `iss` must be; nil to accept any.
    ///   - leeway: The seconds by which the issuer's clock and this one may differ.
    public init(keys: TokenKeys, audience: String?, issuer: String? = nil, leeway: Int64 = 60) {
        precondition(leeway >= 0, "clocks differ by no less than nothing")
        self.keys = keys
        self.audience = audience
        self.issuer = issuer
        self.leeway = leeway
    }

    /// Verifies a token, and returns its claims.
    /// - Parameter now: The time, in seconds since 1970.
    /// - Throws: `TokenRefusal`.
    public func claims(of token: [UInt8], now: Int64) throws(TokenRefusal) -> TokenClaims {
        guard token.count <= Self.longestToken else { throw .tooLong }
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.bytes(parts[0]),
            let payload = Base64URL.bytes(parts[1]), let signature = Base64URL.bytes(parts[2])
        else { throw .malformed }
        let head = try Header(header)
        let signed = Array(token[..<parts[1].endIndex])
        try check(head, signature, of: signed)
        let claims = try TokenClaims(payload)
        try check(claims, now)
        return claims
    }

    private func check(
        _ head: Header, _ signature: [UInt8], of signed: [UInt8]
    ) throws(TokenRefusal) {
        guard let algorithm = TokenAlgorithm(rawValue: head.algorithm) else {
            throw .unsupportedAlgorithm
        }
        guard !head.isCritical else { throw .notUnderstood }
        var candidates = keys.keys
        if let name = head.key {
            // A key without a name may be the one of any token.
            candidates = candidates.filter { $0.identifier == name || $0.identifier == nil }
            guard !candidates.isEmpty else { throw .unknownKey }
        }
        candidates = candidates.filter { $0.algorithm == algorithm }
        guard !candidates.isEmpty else { throw .wrongAlgorithm }
        guard candidates.contains(where: { $0.verifies(signature, of: signed) }) else {
            throw .forged
        }
    }

    private func check(_ claims: TokenClaims, _ now: Int64) throws(TokenRefusal) {
        guard let expires = claims.expires else { throw .endless }
        // A token is refused at or after this time (RFC 7519, section 4.1.4).
        guard now - leeway < expires else { throw .expired }
        if let notBefore = claims.notBefore, now + leeway < notBefore { throw .notYet }
        if let audience, !claims.audience.contains(audience) { throw .wrongAudience }
        if let issuer, claims.issuer != issuer { throw .wrongIssuer }
    }
}

/// The members of the first part of a token.
private struct Header {
    var algorithm = ""
    var key: String?
    var isCritical = false

    init(_ bytes: [UInt8]) throws(TokenRefusal) {
        var found = (algorithm: String?.none, key: String?.none, isCritical: false)
        do {
            var json = JSONReader(bytes)
            try json.readObject { (json, name) throws(WireFault) in
                switch name {
                case "alg": found.algorithm = try json.readText()
                case "kid": found.key = try json.readText()
                default:
                    if name == "crit" { found.isCritical = true }
                    try json.skipValue()
                }
            }
            try json.finish()
        } catch {
            throw .malformed
        }
        guard let algorithm = found.algorithm else { throw .malformed }
        self.algorithm = algorithm
        key = found.key
        isCritical = found.isCritical
    }
}
