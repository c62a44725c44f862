/// The address of a Redis server, and the credentials for it.
public struct RedisAddress: Hashable, Sendable {
    public let host: String
    public let port: Int
    /// The name of the user; nil for the default user.
    public let user: String?
    let password: String?
    /// The number of the database.
    public let database: Int

    /// - Parameter url: `redis://USER:PASSWORD@HOST:PORT/NUMBER`. Only the host is required.
    /// - Throws: `RedisError` `.malformedAddress`.
    public init(_ url: String) throws(RedisError) {
        guard let scheme = url.firstRange(of: "://") else { throw Self.malformed("no scheme") }
        guard url[..<scheme.lowerBound].lowercased() == "redis" else {
            throw Self.malformed("only redis:// is spoken; for TLS put stunnel between")
        }
        var rest = url[scheme.upperBound...]
        guard !rest.contains(where: { $0 == "?" || $0 == "#" }) else {
            throw Self.malformed("settings behind the address are not known")
        }
        var number = 0
        if let slash = rest.firstIndex(of: "/") {
            let path = rest[rest.index(after: slash)...]
            guard path.isEmpty || Int(path).map({ (0..<65_536).contains($0) }) == true else {
                throw Self.malformed("the database is a number")
            }
            number = Int(path) ?? 0
            rest = rest[..<slash]
        }
        (user, password) = try Self.credentials(&rest)
        (host, port) = try Self.hostAndPort(rest)
        database = number
    }

    private static func malformed(_ why: String) -> RedisError {
        RedisError(.malformedAddress, "the address of Redis cannot be read: \(why)")
    }

    private static func credentials(
        _ rest: inout Substring
    ) throws(RedisError) -> (String?, String?) {
        guard let at = rest.lastIndex(of: "@") else { return (nil, nil) }
        let words = rest[..<at].split(
            separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        rest = rest[rest.index(after: at)...]
        guard let user = decoded(words[0]), let password = decoded(words.count == 2 ? words[1] : "")
        else { throw malformed("user or password are not percent-encoded") }
        return (user.isEmpty ? nil : user, password.isEmpty ? nil : password)
    }

    private static func hostAndPort(_ text: Substring) throws(RedisError) -> (String, Int) {
        var host = text
        var digits: Substring?
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<end]
            let behind = text[text.index(after: end)...]
            guard behind.isEmpty || behind.hasPrefix(":") else { throw malformed("the port") }
            digits = behind.isEmpty ? nil : behind.dropFirst()
        } else if let colon = text.lastIndex(of: ":") {
            host = text[..<colon]
            digits = text[text.index(after: colon)...]
        }
        let port = digits.map { Int($0) ?? 0 } ?? 6_379
        guard !host.isEmpty, (1...65_535).contains(port) else {
            throw malformed("host and port are needed, such as 127.0.0.1:6379")
        }
        return (String(host), port)
    }

    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, let value = UInt8(String(Substring(digits)), radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension RedisAddress: CustomStringConvertible, CustomReflectable {
    /// The address without user and password, for logs.
    public var description: String { "redis://\(host):\(port)/\(database)" }

    /// A mirror without the password, so that a dump does not show it.
    public var customMirror: Mirror { Mirror(self, children: ["address": description]) }
}
