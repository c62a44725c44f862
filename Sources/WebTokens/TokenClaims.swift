internal import MartletModel
internal import MartletProtocol

/// The claims of a valid token.
public struct TokenClaims: Hashable, Sendable {
    /// The subject of the token (`sub`); nil if it names none.
    public var subject: String? { text("sub") }
    /// The issuer of the token (`iss`); nil if it names none.
    public var issuer: String? { text("iss") }
    /// The recipients of the token (`aud`).
    public var audience: [String] { list("aud") }
    /// The expiry (`exp`) in seconds since 1970, rounded down; nil if there is none.
    public let expires: Int64?
    /// The begin of validity (`nbf`) in seconds since 1970, rounded up; nil if there is none.
    public let notBefore: Int64?

    private let texts: [String: String]
    private let others: [String: String]
    private let lists: [String: [String]]
    /// The claims that are neither texts nor lists of texts.
    private let odd: Set<String>

    /// Returns a claim that is a text; nil if there is none.
    public func text(_ name: String) -> String? { texts[name] }

    /// The claims that are texts, integers or Booleans, as texts, without the times.
    public var values: [String: String] { texts.merging(others) { text, _ in text } }

    /// Returns a claim that is a list of texts, or one text; empty if there is none.
    public func list(_ name: String) -> [String] {
        lists[name] ?? texts[name].map { [$0] } ?? []
    }

    /// Returns whether a claim is there and is neither a text nor a list of texts.
    public func isOdd(_ name: String) -> Bool { odd.contains(name) }

    /// - Throws: `TokenRefusal` `.malformed` if the payload is no object, or a claim has the wrong
    ///   type.
    init(_ payload: [UInt8]) throws(TokenRefusal) {
        var texts: [String: String] = [:]
        var others: [String: String] = [:]
        var lists: [String: [String]] = [:]
        var moments: [String: Double] = [:]
        var odd: Set<String> = []
        var isRight = true
        do {
            var json = JSONReader(payload)
            try json.readObject { (json, name) throws(WireFault) in
                switch json.nextKind() {
                case .text: texts[name] = try json.readText()
                case .array:
                    let list = try Self.texts(&json)
                    lists[name] = list ?? []
                    if list == nil { odd.insert(name) }
                case .number where Self.moments.contains(name):
                    switch try json.readValue() {
                    case .integer(let seconds): moments[name] = Double(seconds)
                    case .real(let seconds): moments[name] = seconds
                    default: isRight = false
                    }
                case .number, .boolean:
                    odd.insert(name)
                    if Self.moments.contains(name) || Self.named.contains(name) { isRight = false }
                    // A number that is beyond 64 bits is no claim, and no reason against the token.
                    var copy = json
                    switch try? copy.readValue() {
                    case .integer(let number)?: others[name] = "\(number)"
                    case .boolean(let flag)?: others[name] = "\(flag)"
                    default: break
                    }
                    try json.skipValue()
                default:
                    odd.insert(name)
                    // A time claim of the wrong type, such as null, must not be treated as absent.
                    if Self.moments.contains(name) || Self.named.contains(name) { isRight = false }
                    try json.skipValue()
                }
            }
            try json.finish()
        } catch {
            throw .malformed
        }
        // The claims that are checked must have the types of RFC 7519, or the token is refused.
        let hasTextMoment = Self.moments.contains { texts[$0] != nil || lists[$0] != nil }
        let hasOddName = ["iss", "sub"].contains { lists[$0] != nil }
        guard isRight, !hasTextMoment, !hasOddName, let expires = Self.whole(moments["exp"], .down),
            let notBefore = Self.whole(moments["nbf"], .up)
        else { throw .malformed }
        self.texts = texts
        self.others = others
        self.lists = lists
        self.odd = odd
        self.expires = expires
        self.notBefore = notBefore
    }

    private static let moments: Set = ["exp", "nbf", "iat"]
    private static let named: Set = ["aud", "iss", "sub"]

    /// Reads a list of texts; nil if the list has another value.
    private static func texts(_ json: inout JSONReader) throws(WireFault) -> [String]? {
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
        return isRight ? texts : nil
    }

    /// Returns the time rounded to seconds. Returns nil for a number that is no time, and an inner
    /// nil if there is no time.
    private static func whole(
        _ seconds: Double?, _ rule: FloatingPointRoundingRule
    ) -> Int64?? {
        guard let seconds else { return .some(nil) }
        guard seconds.magnitude < 1e15 else { return nil }
        return .some(Int64(seconds.rounded(rule)))
    }
}
