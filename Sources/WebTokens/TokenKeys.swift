internal import Foundation
internal import MartletModel
internal import MartletProtocol
internal import OpenSSLKit

/// The keys that verify tokens.
public struct TokenKeys: Sendable {
    /// The maximum number of keys. A token without a key's name is tried with each.
    public static let most = 100

    public let keys: [TokenKey]

    /// - Throws: `TokenKeyFault` if there is no key, there are too many, or two have the same name.
    public init(_ keys: [TokenKey]) throws(TokenKeyFault) {
        guard !keys.isEmpty else {
            throw TokenKeyFault("There is no key that tokens could be checked with.")
        }
        guard keys.count <= Self.most else {
            throw TokenKeyFault("At most \(Self.most) keys can be used; there are \(keys.count).")
        }
        let names = keys.compactMap(\.identifier)
        guard Set(names).count == names.count else {
            throw TokenKeyFault("Two keys have the same name (kid); leave one out.")
        }
        self.keys = keys
    }

    /// Reads the content of a key file: a PEM block `BEGIN PUBLIC KEY`, or a JWK Set (RFC 7517).
    ///
    /// A secret for HS256 can only be in a JWK Set (`"kty": "oct"`). Otherwise a truncated file
    /// with a public key would become a secret that everybody knows.
    /// - Throws: `TokenKeyFault`.
    public init(file contents: [UInt8]) throws(TokenKeyFault) {
        switch contents.first(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) {
        case UInt8(ascii: "{"):
            try self.init(Self.read(contents))
        case UInt8(ascii: "-"):
            guard !String(decoding: contents, as: UTF8.self).contains("PRIVATE KEY") else {
                throw Self.privateKey
            }
            guard let key = PublicKey(pem: contents) else {
                throw TokenKeyFault(
                    "The PEM file holds no public key for Ed25519 or RSA; it begins with "
                        + "“-----BEGIN PUBLIC KEY-----” where it does.")
            }
            try self.init([try TokenKey(key)])
        default:
            throw TokenKeyFault("The key file is neither PEM nor a JWK Set.")
        }
    }

    /// Reads a file.
    /// - Throws: `TokenKeyFault`, also if the file cannot be read.
    public static func load(path: String) throws(TokenKeyFault) -> TokenKeys {
        guard let contents = FileManager.default.contents(atPath: path) else {
            throw TokenKeyFault("The key file cannot be read; check its name and its rights.")
        }
        return try TokenKeys(file: [UInt8](contents))
    }

    private static let privateKey = TokenKeyFault(
        "This is a private key. The server needs the public one only; keep this with the issuer.")

    // MARK: - JWK Set

    private static func read(_ contents: [UInt8]) throws(TokenKeyFault) -> [TokenKey] {
        var found: [KeyMembers] = []
        var hasKeys = false
        do {
            var json = JSONReader(contents)
            try json.readObject { (json, name) throws(WireFault) in
                guard name == "keys" else { return try json.skipValue() }
                hasKeys = true
                try json.readArray { json throws(WireFault) in
                    found.append(try KeyMembers(&json))
                }
            }
            try json.finish()
        } catch {
            throw TokenKeyFault("The JWK Set is not JSON of the form {\"keys\": [{…}]}.")
        }
        guard hasKeys else {
            throw TokenKeyFault("The JSON is no JWK Set: it has no member “keys”.")
        }
        var keys: [TokenKey] = []
        for members in found {
            if let key = try key(members) { keys.append(key) }
        }
        return keys
    }

    /// Returns the key; nil if it has another use or kind. A set may have such keys (RFC 7517,
    /// section 5).
    private static func key(_ members: KeyMembers) throws(TokenKeyFault) -> TokenKey? {
        guard members["use"] == nil || members["use"] == "sig" else { return nil }
        let name = members["kid"]
        let made: TokenKey
        switch (members["kty"], members["crv"]) {
        case ("OKP", "Ed25519"):
            guard members["d"] == nil else { throw privateKey }
            guard let key = members.bytes("x").flatMap({ PublicKey(ed25519: $0) }) else {
                throw damaged(name)
            }
            made = try TokenKey(key, identifier: name)
        case ("RSA", _):
            guard members["d"] == nil else { throw privateKey }
            guard let modulus = members.bytes("n"), let exponent = members.bytes("e"),
                let key = PublicKey(modulus: modulus, exponent: exponent)
            else { throw damaged(name) }
            made = try TokenKey(key, identifier: name)
        case ("oct", _):
            guard let secret = members.bytes("k") else { throw damaged(name) }
            made = try TokenKey(secret: secret, identifier: name)
        default: return nil
        }
        let algorithm = members["alg"]
        return algorithm == nil || algorithm == made.algorithm.rawValue ? made : nil
    }

    private static func damaged(_ name: String?) -> TokenKeyFault {
        TokenKeyFault("The key \(name.map { "“\($0)”" } ?? "without a name") cannot be read.")
    }
}

/// The text members of one JWK.
private struct KeyMembers {
    private var texts: [String: String] = [:]

    init(_ json: inout JSONReader) throws(WireFault) {
        var texts: [String: String] = [:]
        try json.readObject { (json, name) throws(WireFault) in
            if json.nextKind() == .text {
                texts[name] = try json.readText()
            } else {
                try json.skipValue()
            }
        }
        self.texts = texts
    }

    subscript(name: String) -> String? { texts[name] }

    func bytes(_ name: String) -> [UInt8]? {
        texts[name].flatMap { Base64URL.bytes($0.utf8) }
    }
}
