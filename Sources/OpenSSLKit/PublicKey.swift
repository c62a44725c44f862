internal import COpenSSL

/// A public key, which verifies signatures.
///
/// Unchecked because of the pointer: the key never changes after `init`, and OpenSSL's keys may be
/// read by any number of threads (OpenSSL 3.0, “openssl-threads”).
public final class PublicKey: @unchecked Sendable {
    /// The algorithm of the key.
    public enum Kind: Hashable, Sendable {
        /// Signatures of RFC 8032, over the message itself.
        case ed25519
        /// RSASSA-PKCS1-v1_5 with SHA-256.
        case rsa(bits: Int)
    }

    public let kind: Kind
    private let pointer: OpaquePointer

    /// Takes the key over. Returns nil for an unsupported algorithm.
    private init?(taking pointer: OpaquePointer?) {
        guard let pointer else {
            ERR_clear_error()
            return nil
        }
        switch EVP_PKEY_get_base_id(pointer) {
        case EVP_PKEY_ED25519: kind = .ed25519
        case EVP_PKEY_RSA: kind = .rsa(bits: Int(EVP_PKEY_get_bits(pointer)))
        default:
            EVP_PKEY_free(pointer)
            return nil
        }
        self.pointer = pointer
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    /// Creates an Ed25519 key from its 32 bytes; nil for any other number of bytes.
    public convenience init?(ed25519 bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.init(
            taking: EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count))
    }

    /// Creates an RSA key from its modulus and exponent, big-endian; nil if they are no valid key.
    public convenience init?(modulus: [UInt8], exponent: [UInt8]) {
        guard (1...2_048).contains(modulus.count), (1...8).contains(exponent.count) else {
            return nil
        }
        self.init(
            taking: martlet_rsa_key(
                modulus, Int32(modulus.count), exponent, Int32(exponent.count)))
    }

    /// Creates a key from a PEM block `BEGIN PUBLIC KEY`; nil if there is none, or the algorithm is
    /// not supported.
    public convenience init?(pem: [UInt8]) {
        // OpenSSL copies nothing: it reads from these bytes for as long as the BIO exists.
        let key = pem.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            return PEM_read_bio_PUBKEY(bio, nil, nil, nil)
        }
        self.init(taking: key)
    }

    /// Returns whether the holder of the private key signed the message.
    public func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            // A forged signature leaves an error behind, which would be taken for that of a later
            // call.
            ERR_clear_error()
        }
        let digest = kind == .ed25519 ? nil : EVP_sha256()
        guard EVP_DigestVerifyInit(context, nil, digest, nil, pointer) == 1 else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}
