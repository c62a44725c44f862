internal import COpenSSL

/// Returns whether two secrets are equal, in a time that depends on their lengths only.
public func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    guard !left.isEmpty else { return true }
    return left.withUnsafeBytes { a in
        right.withUnsafeBytes { b in
            CRYPTO_memcmp(a.baseAddress, b.baseAddress, a.count) == 0
        }
    }
}

/// Returns unpredictable bytes from OpenSSL's generator, which the operating system seeds.
///
/// Stops the process if the generator cannot be seeded, because there is no safe way to continue.
public func secureRandomBytes(_ byteCount: Int) -> [UInt8] {
    precondition(byteCount >= 0 && byteCount <= Int(Int32.max), "a sensible number of bytes")
    return [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
        if byteCount > 0 {
            precondition(
                RAND_bytes(buffer.baseAddress, Int32(byteCount)) == 1,
                "the random generator has no seed")
        }
        count = byteCount
    }
}
