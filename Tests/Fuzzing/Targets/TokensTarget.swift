import OpenSSLKit

@testable import WebTokens

/// An issuer's tokens and key files. The first byte says as what the rest is read: a token as it
/// stands, a head and a payload (parted by a line feed) that get a good signature, or a key file.
enum TokensTarget: FuzzTarget {
    static let name = "tokens"

    /// What the kept inputs are signed with, too.
    static let secret = [UInt8]("a secret of thirty-two bytes or so".utf8)
    private static let now: Int64 = 1_800_000_000

    static func check(_ input: [UInt8]) throws {
        guard let kind = input.first else { return }
        let rest = Array(input.dropFirst())
        let keys = try TokenKeys([try TokenKey(secret: secret, identifier: "k")])
        let verifier = TokenVerifier(keys: keys, audience: "martlet")
        switch kind % 3 {
        case 0:
            guard let claims = try? verifier.claims(of: rest, now: now) else { return }
            let parts = rest.split(separator: UInt8(ascii: "."))
            let signed = parts[0] + [UInt8(ascii: ".")] + parts[1]
            try hold(
                Base64URL.bytes(parts[2]) == HMACSHA256.code(Array(signed), key: secret),
                "only what the key has signed is believed")
            try checkClaims(claims)
        case 1:
            let parts = rest.split(
                separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
            let signed = parts.map { text(of: Array($0)) }.joined(separator: ".")
            let code = HMACSHA256.code([UInt8](signed.utf8), key: secret)
            let token = [UInt8]("\(signed).\(text(of: code))".utf8)
            if let claims = try? verifier.claims(of: token, now: now) { try checkClaims(claims) }
        default:
            guard let keys = try? TokenKeys(file: rest) else { return }
            try hold((1...TokenKeys.most).contains(keys.keys.count), "no more keys than allowed")
            for key in keys.keys {
                try hold(!key.verifies([], of: [1]), "nothing is no signature")
            }
        }
    }

    private static func checkClaims(_ claims: TokenClaims) throws {
        try hold(claims.audience.contains("martlet"), "a token is for this server")
        try hold((claims.expires ?? 0) > now - 60, "a token has an end, which has not come")
        try hold((claims.notBefore ?? 0) <= now + 60, "a token's time has come")
    }

    /// Base64url, the other way round.
    static func text(of bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(letters[Int(bits >> count & 63)])
            }
        }
        if count > 0 { text.append(letters[Int(bits << (6 - count) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }
}
