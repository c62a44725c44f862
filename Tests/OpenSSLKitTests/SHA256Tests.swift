import OpenSSLKit
import Testing

@Suite("SHA-256")
struct SHA256Tests {
    /// NIST's examples for FIPS 180-4.
    @Test(
        "hashes the published examples",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ])
    func examples(text: String, digest: String) {
        #expect(Hexadecimal.text(SHA256.digest([UInt8](text.utf8))) == digest)
    }

    @Test("hashes a slice as if it stood alone, and pieces as if they were one")
    func slices() {
        let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        #expect(SHA256.digest(bytes, 10, 300) == SHA256.digest([UInt8](bytes[10..<300])))
        #expect(SHA256.digest(bytes, 5, 5) == SHA256.digest([]))
        var hash = SHA256()
        hash.update(bytes, 0, 400)
        hash.update([])
        hash.update(bytes, 400, 1_000)
        #expect(hash.finish() == SHA256.digest(bytes))
    }
}

@Suite("Secrets")
struct SecretsTests {
    @Test("compares the whole of both")
    func equality() {
        #expect(constantTimeEqual([], []))
        #expect(constantTimeEqual([1, 2, 3], [1, 2, 3]))
        #expect(!constantTimeEqual([1, 2, 3], [1, 2, 4]))
        #expect(!constantTimeEqual([1, 2, 3], [1, 2]))
        #expect(!constantTimeEqual([], [0]))
    }

    @Test("makes as many random bytes as asked for, and not the same twice")
    func randomBytes() {
        #expect(secureRandomBytes(0).isEmpty)
        let first = secureRandomBytes(32)
        #expect(first.count == 32)
        #expect(first != secureRandomBytes(32))
    }

    @Test("writes and reads hexadecimal, and refuses anything else")
    func hexadecimal() {
        #expect(Hexadecimal.text([0, 15, 160, 255]) == "000fa0ff")
        #expect(Hexadecimal.bytes("000fA0FF") == [0, 15, 160, 255])
        #expect(Hexadecimal.bytes("") == [])
        #expect(Hexadecimal.bytes("0") == nil)
        #expect(Hexadecimal.bytes("0g") == nil)
        #expect(Hexadecimal.bytes("é0") == nil)
    }
}
