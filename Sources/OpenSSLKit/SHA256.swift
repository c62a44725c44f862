internal import COpenSSL

/// SHA-256 (FIPS 180-4), through OpenSSL's EVP interface.
///
/// The static functions hash the bytes of one array. A value hashes a message that arrives in
/// pieces.
public struct SHA256: ~Copyable {
    /// The number of bytes of a digest.
    public static let digestByteCount = 32

    private let context: OpaquePointer

    /// Starts an empty message.
    public init() {
        guard let context = EVP_MD_CTX_new() else {
            preconditionFailure("OpenSSL has no memory for a hash")
        }
        self.context = context
        precondition(
            EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1, "OpenSSL offers no SHA-256")
    }

    deinit {
        EVP_MD_CTX_free(context)
    }

    /// Adds bytes to the message.
    public mutating func update(_ bytes: [UInt8]) {
        update(bytes, 0, bytes.count)
    }

    /// Adds the bytes at `start ..< end` to the message, without copying them.
    /// - Precondition: 0 ≤ `start` ≤ `end` ≤ `bytes.count`.
    public mutating func update(_ bytes: [UInt8], _ start: Int, _ end: Int) {
        precondition(0 <= start && start <= end && end <= bytes.count, "range outside the bytes")
        guard start < end else { return }
        bytes.withUnsafeBytes { all in
            let part = UnsafeRawBufferPointer(rebasing: all[start..<end])
            precondition(
                EVP_DigestUpdate(context, part.baseAddress, part.count) == 1, "hashing failed")
        }
    }

    /// Ends the message and returns its digest, 32 bytes.
    public consuming func finish() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.digestByteCount) { buffer, count in
            precondition(
                EVP_DigestFinal_ex(context, buffer.baseAddress, nil) == 1, "hashing failed")
            count = Self.digestByteCount
        }
    }

    /// Returns the digest of `bytes`, of 32 bytes.
    public static func digest(_ bytes: [UInt8]) -> [UInt8] {
        digest(bytes, 0, bytes.count)
    }

    /// Returns the digest of the bytes at `start ..< end`, without copying them.
    /// - Precondition: 0 ≤ `start` ≤ `end` ≤ `bytes.count`.
    public static func digest(_ bytes: [UInt8], _ start: Int, _ end: Int) -> [UInt8] {
        var hash = SHA256()
        hash.update(bytes, start, end)
        return hash.finish()
    }
}
