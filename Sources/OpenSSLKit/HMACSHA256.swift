internal import COpenSSL

/// A keyed hash of a message (RFC 2104) with SHA-256.
public enum HMACSHA256 {
    /// - Returns: The code, of 32 bytes.
    public static func code(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: SHA256.digestByteCount) { buffer, count in
            var length: UInt32 = 0
            let found = HMAC(
                EVP_sha256(), key, Int32(key.count), message, message.count, buffer.baseAddress,
                &length)
            precondition(
                found != nil && length == UInt32(SHA256.digestByteCount), "hashing failed")
            count = SHA256.digestByteCount
        }
    }
}
