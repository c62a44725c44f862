internal import MartletModel
internal import MartletProtocol

/// What a good token says.
public struct TokenClaims: Hashable, Sendable {
    /// Who the token is about (`sub`).
    public var subject: String? { text("sub") }
    /// Who made it (`iss`).
    public var issuer: String? { text("iss") }
    /// Whom it is for (`aud`).
    public var audience: [String] { list("aud") }
    /// Seconds since 1970, rounded down.
    public let expires: Int64?
    /// Seconds since 1970, rounded up.
    public let notBefore: Int64?

    private let texts: [String: String]
    private let lists: [String: [String]]

    /// A claim that is text; nil where there is none.
    public func text(_ name: String) -> String? { texts[name] }

    /// A claim that is a list of texts, or one text; empty where there is none.
    public func list(_ name: String) -> [String] {
        lists[name] ?? texts[name].map { [$0] } ?? []
    }

    /// - Throws: `TokenRefusal` `.malformed`.
    init(_ payload: [UInt8]) throws(TokenRefusal) {
        var texts: [String: String] = [:]
        var lists: [String: [String]] = [:]
        var moments: [String: Double] = [:]
        var isRight = true
        do {
            var json = JSONReader(payload)
            try json.readObject { (json, name) throws(WireFault) in
                switch json.nextKind() {
                case .text: texts[name] = try json.readText()
                case .array: lists[name] = try Self.texts(&json)
                case .number where Self.moments.contains(name):
                    switch try json.readValue() {
                    case .integer(let seconds): moments[name] = Double(seconds)
                    case .real(let seconds): moments[name] = seconds
                    default: isRight = false
                    }
                default:
                    // A moment that is null or so must not count as none.
                    if Self.moments.contains(name) || Self.named.contains(name) { isRight = false }
                    try json.skipValue()
                }
            }
            try json.finish()
        } catch {
            throw .malformed
        }
        // Those that decide are of the kinds RFC 7519 says, or the token is refused.
        let hasTextMoment = Self.moments.contains { texts[$0] != nil || lists[$0] != nil }
        let hasOddName = ["iss", "sub"].contains { lists[$0] != nil }
        guard isRight, !hasTextMoment, !hasOddName, let expires = Self.whole(moments["exp"], .down),
            let notBefore = Self.whole(moments["nbf"], .up)
        else { throw .malformed }
        self.texts = texts
        self.lists = lists
        self.expires = expires
        self.notBefore = notBefore
    }

    private static let moments: Set = ["exp", "nbf", "iat"]
    private static let named: Set = ["aud", "iss", "sub"]

    /// The texts of a list; what else is in it makes the list empty.
    private static func texts(_ json: inout JSONReader) throws(WireFault) -> [String] {
        var texts: [String] = []
        var isRight = true
        try json.readArray { json throws(WireFault) in
            if json.nextKind() == .text {
                texts.append(try json.readText())
            } else {
                isRight = false
                try json.skipValue()
            }
        }
        return isRight ? texts : []
    }

    /// nil for a number that is no moment; a moment that is missing is nil inside.
    private static func whole(
        _ seconds: Double?, _ rule: FloatingPointRoundingRule
    ) -> Int64?? {
        guard let seconds else { return .some(nil) }
        guard seconds.magnitude < 1e15 else { return nil }
        return .some(Int64(seconds.rounded(rule)))
    }
}
