internal import WebTokens

/// A token that is given when the server starts, as `DATASET:TOKEN`. It is for trials and tests.
///
/// ```swift
/// configuration.tokens = [try FixedToken("club:a-long-secret")]
/// ```
public struct FixedToken: Hashable, Sendable {
    public let dataSet: String
    let token: String

    /// Makes a token for a data set.
    ///
    /// - Throws: `ServerFailure` if the name cannot be a data set's, or an Authorization header
    ///   could not hold the token.
    public init(dataSet: String, token: String) throws(ServerFailure) {
        try DataSetName.check(dataSet)
        guard token.utf8.count <= 512, BearerToken.isValid([UInt8](token.utf8)) else {
            throw ServerFailure(
                "A token is up to 512 of the letters, digits and “-._~+/=”, and is not empty.")
        }
        self.dataSet = dataSet
        self.token = token
    }

    /// Reads `DATASET:TOKEN`.
    /// - Throws: `ServerFailure` for anything else.
    public init(_ text: String) throws(ServerFailure) {
        guard let colon = text.firstIndex(of: ":") else {
            throw ServerFailure("A fixed token is given as DATASET:TOKEN, with a colon between.")
        }
        try self.init(
            dataSet: String(text[..<colon]), token: String(text[text.index(after: colon)...]))
    }
}

/// A token as a header has it (RFC 6750 §2.1).
enum BearerToken {
    /// Returns the token of an `Authorization` header; nil if the header has another scheme or no
    /// token.
    static func parse(_ header: String) -> [UInt8]? {
        let bytes = [UInt8](header.utf8)
        let scheme = [UInt8]("bearer ".utf8)
        guard bytes.count > scheme.count else { return nil }
        for position in scheme.indices where bytes[position] | 0x20 != scheme[position] {
            return nil
        }
        let token = [UInt8](bytes[scheme.count...].drop { $0 == UInt8(ascii: " ") })
        return isValid(token) ? token : nil
    }

    static func isValid(_ token: [UInt8]) -> Bool {
        (1...TokenVerifier.longestToken).contains(token.count)
            && token.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "+"), UInt8(ascii: "/"),
                    UInt8(ascii: "="):
                    true
                default: false
                }
            }
    }
}
