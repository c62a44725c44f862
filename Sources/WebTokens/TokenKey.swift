public import OpenSSLKit

/// The algorithm of a signature. There is no value for an unsigned token.
public enum TokenAlgorithm: String, Hashable, Sendable, CaseIterable {
    /// Ed25519 (RFC 8037).
    case eddsa = "EdDSA"
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// A secret that issuer and server share.
    case hs256 = "HS256"
}

/// A key for signatures of tokens, with its one algorithm.
public struct TokenKey: Sendable {
    enum Material: Sendable {
        case secret([UInt8])
        case key(PublicKey)
    }

    /// The minimum number of bits of an RSA key (NIST SP 800-131A).
    public static let fewestRSABits = 2_048
    /// The minimum number of bytes of a secret (RFC 7518, section 3.2).
    public static let fewestSecretBytes = 32

    /// The name of the key in tokens (`kid`); nil if it has none.
    public let identifier: String?
    public let algorithm: TokenAlgorithm
    let material: Material

    /// Creates a key for HS256.
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

    /// Creates a key for EdDSA or RS256.
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

    /// Returns whether the key's holder signed the message.
    func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        switch material {
        case .secret(let secret):
            constantTimeEqual(HMACSHA256.code(message, key: secret), signature)
        case .key(let key): key.verifies(signature, of: message)
        }
    }
}

/// The error for keys that cannot be used. It names the key and the remedy.
public struct TokenKeyFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence, which contains no part of a key.
    public let description: String

    /// Creates an error with a sentence for the operator.
    public init(_ description: String) {
        self.description = description
    }
}
