import MartletModel
import OpenSSLKit
import Testing

@testable import WebTokens

/// Makes tokens for HS256, right and wrong ones.
private enum Issuer {
    static let secret = [UInt8]("0123456789abcdef0123456789abcdef".utf8)

    static func token(
        header: String = #"{"alg":"HS256"}"#, _ claims: String, secret: [UInt8] = Issuer.secret
    ) -> [UInt8] {
        let signed = encoded([UInt8](header.utf8)) + "." + encoded([UInt8](claims.utf8))
        let code = HMACSHA256.code([UInt8](signed.utf8), key: secret)
        return [UInt8]((signed + "." + encoded(code)).utf8)
    }

    static func encoded(_ bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            var part = ""
            for _ in 0..<4 {
                part = String(letters[bits & 63]) + part
                bits >>= 6
            }
            text += part.prefix(group.count + 1)
        }
        return text
    }
}

private func makeVerifier(
    _ keys: [TokenKey], audience: String? = nil, issuer: String? = nil, leeway: Int64 = 0
) throws -> TokenVerifier {
    TokenVerifier(
        keys: try TokenKeys(keys), audience: audience, issuer: issuer, leeway: leeway)
}

private func refusal(_ verifier: TokenVerifier, _ token: [UInt8], now: Int64 = 1_500_000_000)
    -> TokenRefusal?
{
    do {
        _ = try verifier.claims(of: token, now: now)
        return nil
    } catch {
        return error
    }
}

@Suite("Signatures of tokens")
struct TokenSignatureTests {
    private static let secret = [UInt8](Issuer.secret)

    @Test("HMAC as in RFC 4231, test cases 2 and 6")
    func hmac() {
        #expect(
            Hexadecimal.text(
                HMACSHA256.code(
                    [UInt8]("what do ya want for nothing?".utf8), key: [UInt8]("Jefe".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        #expect(
            Hexadecimal.text(
                HMACSHA256.code(
                    [UInt8]("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                    key: Array(repeating: 0xaa, count: 131)))
                == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    }

    @Test("the HS256 example of RFC 7515, appendix A.1")
    func hs256() throws {
        let key =
            "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
        let token = """
            eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQog\
            Imh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
            """
        let keys = try TokenKeys(file: [UInt8](#"{"keys":[{"kty":"oct","k":"\#(key)"}]}"#.utf8))
        let verifier = TokenVerifier(keys: keys, audience: nil, leeway: 0)
        let claims = try verifier.claims(of: [UInt8](token.utf8), now: 1_300_819_379)
        #expect(claims.issuer == "joe")
        #expect(claims.expires == 1_300_819_380)
        #expect(refusal(verifier, [UInt8](token.utf8), now: 1_300_819_380) == .expired)
    }

    @Test("the RS256 example of RFC 7515, appendix A.2")
    func rs256() throws {
        let modulus = """
            ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4\
            d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5re\
            xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxX\
            FvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ
            """
        let token = """
            eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNv\
            bS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm\
            4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h\
            6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOP\
            qvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw
            """
        let keys = try TokenKeys(
            file: [UInt8](#"{"keys":[{"kty":"RSA","n":"\#(modulus)","e":"AQAB"}]}"#.utf8))
        let verifier = TokenVerifier(keys: keys, audience: nil)
        #expect(try verifier.claims(of: [UInt8](token.utf8), now: 1_300_000_000).issuer == "joe")
    }

    @Test("the Ed25519 example of RFC 8037, appendix A.4")
    func ed25519() throws {
        let x = try #require(Base64URL.bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo".utf8))
        let key = try #require(PublicKey(ed25519: x))
        let message = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
        var signature = try #require(
            Base64URL.bytes(
                """
                hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg
                """.utf8))
        #expect(key.verifies(signature, of: [UInt8](message.utf8)))
        #expect(!key.verifies(signature, of: [UInt8]((message + "A").utf8)))
        #expect(!key.verifies([], of: [UInt8](message.utf8)))
        signature[10] ^= 1
        #expect(!key.verifies(signature, of: [UInt8](message.utf8)))
    }

    @Test("tokens of other libraries, with keys from PEM and from a JWK Set")
    func othersTokens() throws {
        let set = """
            {"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"ec"},
            {"kty":"OKP","crv":"Ed25519","x":"\(Samples.ed25519X)","kid":"ed","use":"sig","alg":"EdDSA"},
            {"kty":"RSA","n":"\(Samples.rsaModulus)","e":"AQAB","kid":"rsa","key_ops":["verify"]},
            {"kty":"RSA","n":"\(Samples.rsaModulus)","e":"AQAB","kid":"enc","use":"enc"}]}
            """
        let fromSet = try TokenKeys(file: [UInt8](set.utf8))
        #expect(fromSet.keys.map(\.identifier) == ["ed", "rsa"])
        let files = [(Samples.edDSA, Samples.ed25519PEM), (Samples.rs256, Samples.rsaPEM)]
        for (token, pem) in files {
            for keys in [fromSet, try TokenKeys(file: [UInt8](pem.utf8))] {
                let verifier = TokenVerifier(
                    keys: keys, audience: "martlet", issuer: "https://issuer.example")
                let claims = try verifier.claims(of: [UInt8](token.utf8), now: 1_500_000_000)
                #expect(claims.subject == "ann")
                #expect(claims.text("dataset") == "team")
                #expect(claims.list("roles") == ["coach", "admin"])
                #expect(claims.audience == ["martlet", "other"])
                #expect(claims.notBefore == 1_000_000_000)
            }
        }
        let verifier = TokenVerifier(keys: fromSet, audience: nil)
        #expect(refusal(verifier, [UInt8](Samples.pss.utf8)) == .forged)
    }

    @Test("texts, integers and Booleans are claims as texts; times, lists and other values are not")
    func values() throws {
        let payload = """
            {"sub":"ann","exp":9,"club":"north","age":-7,"admin":true,"x":1.5,"n":null,"l":["a"],"o":{},
            "big":123456789012345678901234567890}
            """
        let claims = try TokenClaims([UInt8](payload.utf8))
        #expect(claims.values == ["sub": "ann", "club": "north", "age": "-7", "admin": "true"])
        for odd in [#""sub":7"#, #""iss":true"#, #""exp":false"#, #""aud":7"#] {
            #expect(throws: TokenRefusal.malformed) { try TokenClaims([UInt8]("{\(odd)}".utf8)) }
        }
    }

    @Test("no byte of a token can be changed, and none left out")
    func changed() throws {
        let keys = try TokenKeys(file: [UInt8](Samples.ed25519PEM.utf8))
        let verifier = TokenVerifier(keys: keys, audience: nil)
        let token = [UInt8](Samples.edDSA.utf8)
        #expect(refusal(verifier, token) == nil)
        for index in token.indices {
            var changed = token
            changed[index] =
                changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(refusal(verifier, changed) != nil, "at \(index)")
            #expect(refusal(verifier, Array(token[..<index])) != nil, "up to \(index)")
        }
    }
}

@Suite("Tokens that are refused")
struct TokenRefusalTests {
    private let right = #"{"exp":2000000000}"#

    private func hs256() throws -> TokenVerifier {
        try makeVerifier([try TokenKey(secret: Issuer.secret)])
    }

    @Test("without a signature, however it is written")
    func none() throws {
        let verifier = try hs256()
        for word in ["none", "None", "NONE", "", "HS512", "ES256", "hs256"] {
            let header = #"{"alg":"\#(word)"}"#
            #expect(refusal(verifier, Issuer.token(header: header, right)) == .unsupportedAlgorithm)
            let bare =
                Issuer.encoded([UInt8](header.utf8)) + "."
                + Issuer.encoded([UInt8](right.utf8)) + "."
            #expect(refusal(verifier, [UInt8](bare.utf8)) == .unsupportedAlgorithm)
        }
        let unsigned =
            Issuer.encoded([UInt8](#"{"alg":"HS256"}"#.utf8)) + "."
            + Issuer.encoded([UInt8](right.utf8)) + "."
        #expect(refusal(verifier, [UInt8](unsigned.utf8)) == .forged)
    }

    @Test("with a public key taken for a secret")
    func confusion() throws {
        let pem = [UInt8](Samples.rsaPEM.utf8)
        let rsa = TokenVerifier(keys: try TokenKeys(file: pem), audience: nil)
        #expect(refusal(rsa, Issuer.token(right, secret: pem)) == .wrongAlgorithm)
        let token = Issuer.token(header: #"{"alg":"RS256"}"#, right, secret: pem)
        #expect(refusal(rsa, token) == .forged)
        #expect(refusal(try hs256(), [UInt8](Samples.rs256.utf8)) == .wrongAlgorithm)
    }

    @Test("by an unknown key, or another's")
    func keysUnknown() throws {
        let one = try TokenKey(secret: Issuer.secret, identifier: "one")
        let two = try TokenKey(secret: Array(Issuer.secret.reversed()), identifier: "two")
        let verifier = try makeVerifier([one, two])
        func token(_ name: String) -> [UInt8] {
            Issuer.token(header: #"{"alg":"HS256","kid":"\#(name)"}"#, right)
        }
        #expect(refusal(verifier, token("one")) == nil)
        #expect(refusal(verifier, token("two")) == .forged)
        #expect(refusal(verifier, token("three")) == .unknownKey)
        #expect(refusal(verifier, Issuer.token(right)) == nil)
        let strange = Issuer.token(right, secret: Array(repeating: 1, count: 32))
        #expect(refusal(verifier, strange) == .forged)
    }

    @Test(
        "that are no tokens",
        arguments: [
            "", ".", "..", "...", "a.b", "e30.e30.e30.e30", "e30.e30", "e30=.e30.e30",
            "e3 0.e30.e30",
            "W10.e30.AA", "e30.e30.AA", "bnVsbA.e30.AA", "mt_0123456789abcdef",
        ])
    func malformedTokens(text: String) throws {
        #expect(refusal(try hs256(), [UInt8](text.utf8)) == .malformed)
    }

    @Test("of JSON that can be read in two ways, or of kinds that no claim has")
    func twoWays() throws {
        let verifier = try hs256()
        for header in [
            #"{"alg":"none","alg":"HS256"}"#, #"{"alg":["HS256"]}"#, #"{"alg":"HS256","kid":1}"#,
            #"{"alg":"HS256"} x"#, "[]", #"{"typ":"JWT"}"#,
        ] {
            #expect(
                refusal(verifier, Issuer.token(header: header, right)) == .malformed, "\(header)")
        }
        for claims in [
            #"{"exp":1,"exp":2000000000}"#, #"{"exp":"2000000000"}"#, #"{"exp":null}"#,
            #"{"exp":[2000000000]}"#, #"{"exp":1e300}"#, #"{"exp":2000000000,"nbf":"0"}"#,
            #"{"exp":2000000000,"aud":1}"#, #"{"exp":2000000000,"iss":["a"]}"#, "[]", "",
        ] {
            #expect(refusal(verifier, Issuer.token(claims)) == .malformed, "\(claims)")
        }
        #expect(
            refusal(verifier, Issuer.token(header: #"{"alg":"HS256","crit":["b64"]}"#, right))
                == .notUnderstood)
        let long = Issuer.token(
            #"{"exp":2000000000,"x":"\#(String(repeating: "x", count: 8_000))"}"#)
        #expect(refusal(verifier, long) == .tooLong)
    }

    @Test("before their time and after it, give or take what clocks differ by")
    func times() throws {
        let token = Issuer.token(#"{"nbf":1000,"exp":2000}"#)
        func refused(_ now: Int64, leeway: Int64) throws -> TokenRefusal? {
            refusal(
                try makeVerifier([try TokenKey(secret: Issuer.secret)], leeway: leeway), token,
                now: now
            )
        }
        #expect(try refused(999, leeway: 0) == .notYet)
        #expect(try refused(1_000, leeway: 0) == nil)
        #expect(try refused(1_999, leeway: 0) == nil)
        #expect(try refused(2_000, leeway: 0) == .expired)
        #expect(try refused(990, leeway: 10) == nil)
        #expect(try refused(989, leeway: 10) == .notYet)
        #expect(try refused(2_009, leeway: 10) == nil)
        #expect(try refused(2_010, leeway: 10) == .expired)
        let verifier = try hs256()
        #expect(refusal(verifier, Issuer.token("{}")) == .endless)
        // Moments may have a fraction.
        let fraction = Issuer.token(#"{"nbf":1000.5,"exp":2000.5}"#)
        #expect(refusal(verifier, fraction, now: 1_000) == .notYet)
        #expect(refusal(verifier, fraction, now: 1_001) == nil)
        #expect(refusal(verifier, fraction, now: 2_000) == .expired)
    }

    @Test("for somebody else, and by somebody else")
    func parties() throws {
        let key = try TokenKey(secret: Issuer.secret)
        let verifier = try makeVerifier([key], audience: "martlet", issuer: "us")
        func refused(_ members: String) -> TokenRefusal? {
            refusal(verifier, Issuer.token(#"{"exp":2000000000\#(members)}"#))
        }
        #expect(refused(#","aud":"martlet","iss":"us""#) == nil)
        #expect(refused(#","aud":["x","martlet"],"iss":"us""#) == nil)
        #expect(refused(#","iss":"us""#) == .wrongAudience)
        #expect(refused(#","aud":"Martlet","iss":"us""#) == .wrongAudience)
        #expect(refused(#","aud":[],"iss":"us""#) == .wrongAudience)
        #expect(refused(#","aud":["martlet",1],"iss":"us""#) == .wrongAudience)
        #expect(refused(#","aud":"martlet","iss":"them""#) == .wrongIssuer)
        #expect(refused(#","aud":"martlet""#) == .wrongIssuer)
    }

    @Test("each refusal is a sentence")
    func sentencesOfTokenRefusals() {
        for refusal in TokenRefusal.allCases {
            #expect(refusal.description.hasSuffix(".") || refusal.description.hasSuffix("?"))
        }
    }
}

@Suite("Keys for tokens")
struct TokenKeyTests {
    private func fault(_ file: String) -> String? {
        do {
            _ = try TokenKeys(file: [UInt8](file.utf8))
            return nil
        } catch {
            return error.description
        }
    }

    @Test("that are weak, private, double, damaged or missing are refused with a sentence")
    func refusedKeys() {
        let secret = Issuer.encoded(Issuer.secret)
        #expect(fault(Samples.weakPEM)?.contains("1024") == true)
        #expect(fault("-----BEGIN PRIVATE KEY-----\nAA\n")?.contains("private") == true)
        #expect(fault("-----BEGIN PUBLIC KEY-----\nAA\n-----END PUBLIC KEY-----\n") != nil)
        let short = fault(#"{"keys":[{"kty":"oct","k":"c2hvcnQ"}]}"#)
        #expect(short?.contains("32 bytes") == true)
        #expect(
            fault(#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA","d":"AA"}]}"#)?
                .contains("private") == true)
        #expect(
            fault(#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA","kid":"k"}]}"#)?.contains("k")
                == true)
        #expect(fault(#"{"keys":[{"kty":"RSA","n":"AA"}]}"#) != nil)
        #expect(
            fault(
                #"{"keys":[{"kty":"oct","k":"\#(secret)","kid":"a"},{"kty":"oct","k":"\#(secret)","kid":"a"}]}"#
            )?.contains("same name") == true)
        #expect(fault(#"{"keys":[]}"#) != nil)
        #expect(fault(#"{"keys":[{"kty":"EC"}]}"#) != nil)
        #expect(fault(#"{"kty":"oct","k":"\#(secret)"}"#)?.contains("keys") == true)
        #expect(fault("{") != nil)
        #expect(fault("") != nil)
        #expect(fault("a plain secret that is long enough, says somebody") != nil)
        for text in [fault("{"), short] { #expect(text?.contains("c2hvcnQ") == false) }
        #expect(fault(#"{"keys":[{"kty":"oct","k":"\#(secret)"}]}"#) == nil)
    }

    @Test("a file that is not there is a fault, too")
    func missingKeyFile() {
        #expect(throws: TokenKeyFault.self) { try TokenKeys.load(path: "/nowhere/at-all.json") }
    }

    @Test("base64url has one text for each bytes")
    func base64() {
        #expect(Base64URL.bytes("".utf8) == [])
        #expect(Base64URL.bytes("AA".utf8) == [0])
        #expect(Base64URL.bytes("-_8".utf8) == [0xfb, 0xff])
        for text in ["A", "AB", "AAB", "AA==", "A A", "+/8", "AAAAA"] {
            #expect(Base64URL.bytes(text.utf8) == nil, "\(text)")
        }
        for count in 0..<100 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
            #expect(Base64URL.bytes(Issuer.encoded(bytes).utf8) == bytes)
        }
    }
}
