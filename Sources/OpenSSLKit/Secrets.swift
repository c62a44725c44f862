internal import COpenSSL

/// Whether two secrets are equal, in a time that depends on their lengths only.
public func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    guard !left.isEmpty else { return true }
    return left.withUnsafeBytes { a in
        right.withUnsafeBytes { b in
            CRYPTO_memcmp(a.baseAddress, b.baseAddress, a.count) == 0
        }
    }
}

/// Bytes nobody can guess, from OpenSSL's generator (seeded by the operating system).
///
/// Stops the process when the generator cannot be seeded: there is no safe way to go on.
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
