public import OpenSSLKit

/// How a token is signed. There is no way to say “not at all”.
public enum TokenAlgorithm: String, Hashable, Sendable, CaseIterable {
    /// Ed25519 (RFC 8037).
    case eddsa = "EdDSA"
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// A secret that issuer and server share.
    case hs256 = "HS256"
}

/// One key that tokens may be signed with, for the one algorithm it is good for.
public struct TokenKey: Sendable {
    enum Material: Sendable {
        case secret([UInt8])
        case key(PublicKey)
    }

    /// RSA keys below are refused (NIST SP 800-131A).
    public static let fewestRSABits = 2_048
    /// Secrets below are refused (RFC 7518, section 3.2).
    public static let fewestSecretBytes = 32

    /// What tokens call it (`kid`); nil where it has no name.
    public let identifier: String?
    public let algorithm: TokenAlgorithm
    let material: Material

    /// A key for HS256.
    /// - Throws: `TokenKeyFault` for a short secret.
    public init(secret: [UInt8], identifier: String? = nil) throws(TokenKeyFault) {
        guard secret.count >= Self.fewestSecretBytes else {
            throw TokenKeyFault(
                "A secret for HS256 has at least \(Self.fewestSecretBytes) bytes; this has "
                    + "\(secret.count). Make a longer one.")
        }
        self.identifier = identifier
        algorithm = .hs256
        material = .secret(secret)
    }

    /// A key for EdDSA or RS256.
    /// - Throws: `TokenKeyFault` for a weak key.
    public init(_ key: PublicKey, identifier: String? = nil) throws(TokenKeyFault) {
        switch key.kind {
        case .ed25519: algorithm = .eddsa
        case .rsa(let bits):
            guard bits >= Self.fewestRSABits else {
                throw TokenKeyFault(
                    "An RSA key has at least \(Self.fewestRSABits) bits; this has \(bits). Make a "
                        + "longer one, or an Ed25519 key.")
            }
            algorithm = .rs256
        }
        self.identifier = identifier
        material = .key(key)
    }

    /// Whether the key's holder signed the message.
    func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        switch material {
        case .secret(let secret):
            constantTimeEqual(HMACSHA256.code(message, key: secret), signature)
        case .key(let key): key.verifies(signature, of: message)
        }
    }
}

/// Keys that cannot be used: which, and what to do.
public struct TokenKeyFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// Without anything of a key.
    public let description: String

    /// A fault with a sentence for whoever set the keys.
    public init(_ description: String) {
        self.description = description
    }
}
