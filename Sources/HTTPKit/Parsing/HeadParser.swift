/// Reads the head of a request exactly as RFC 9112 requires.
///
/// Two readers of one request (this server and a proxy before it) must never disagree on where it
/// ends. The parser therefore refuses bare LF, folded lines, space before a colon, two lengths, and
/// a length next to a transfer coding. It does not repair them.
struct HeadParser {
    /// The most header lines in one request.
    static let maxLines = 100

    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    private init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// Parses a head.
    /// - Parameter bytes: A complete head, including its last empty line, as `HeadScanner` found
    ///   it.
    /// - Throws: `HTTPRefusal` for anything that the server does not accept.
    static func parse(_ bytes: UnsafeRawBufferPointer) throws(HTTPRefusal) -> RequestHead {
        var parser = HeadParser(bytes)
        return try parser.head()
    }

    private mutating func head() throws(HTTPRefusal) -> RequestHead {
        while bytes[position] == UInt8(ascii: "\r"), bytes[position + 1] == UInt8(ascii: "\n") {
            position += 2
            // All later steps stop at the empty line; only this one skips it.
            guard position + 1 < bytes.count else {
                throw .badRequest("The request is an empty line.")
            }
        }
        let method = try methodName()
        let target = try targetText()
        let minor = try minorVersion()
        let headers = HTTPHeaders(bytes: [UInt8](bytes), lines: try lines())
        try checkHost(headers, minor: minor)
        let framing = try framing(headers, minor: minor)
        let (path, query) = try Self.split(target, method: method)
        return RequestHead(
            method: method, path: path, query: query, headers: headers, framing: framing,
            expectsContinue: try expectsContinue(headers, minor: minor),
            keepsAlive: Self.keepsAlive(headers, minor: minor), isVersion1_1: minor >= 1)
    }

    // MARK: - The request line

    private mutating func methodName() throws(HTTPRefusal) -> String {
        let start = position
        while Self.isToken(bytes[position]) { position += 1 }
        guard position > start, position - start <= 32, bytes[position] == UInt8(ascii: " ") else {
            throw .badRequest("The request line does not start with a method and one space.")
        }
        position += 1
        return String(decoding: bytes[start..<(position - 1)], as: UTF8.self)
    }

    private mutating func targetText() throws(HTTPRefusal) -> String {
        let start = position
        while bytes[position] > 0x20, bytes[position] < 0x7f, bytes[position] != UInt8(ascii: "#") {
            position += 1
        }
        guard position > start, bytes[position] == UInt8(ascii: " ") else {
            throw .badRequest("The request's target is missing or has a character it may not have.")
        }
        position += 1
        return String(decoding: bytes[start..<(position - 1)], as: UTF8.self)
    }

    private mutating func minorVersion() throws(HTTPRefusal) -> Int {
        let start = position
        while bytes[position] != UInt8(ascii: "\r") { position += 1 }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        guard text.utf8.count == 8, text.hasPrefix("HTTP/"),
            bytes[start + 5] >= UInt8(ascii: "0"), bytes[start + 5] <= UInt8(ascii: "9"),
            bytes[start + 6] == UInt8(ascii: "."),
            bytes[start + 7] >= UInt8(ascii: "0"), bytes[start + 7] <= UInt8(ascii: "9"),
            bytes[position + 1] == UInt8(ascii: "\n")
        else {
            throw .badRequest("The request line does not end in a version such as HTTP/1.1.")
        }
        guard bytes[start + 5] == UInt8(ascii: "1") else {
            throw HTTPRefusal(
                status: 505, kind: "httpVersion", detail: "This server speaks HTTP/1.1.")
        }
        position += 2
        return Int(bytes[start + 7] - UInt8(ascii: "0"))
    }

    /// Splits a target in origin form or absolute form. “*” is valid for OPTIONS only.
    private static func split(
        _ target: String, method: String
    ) throws(HTTPRefusal) -> (path: String, query: String?) {
        var rest = Substring(target)
        if !target.hasPrefix("/") {
            if target == "*", method == "OPTIONS" { return ("*", nil) }
            let lower = target.lowercased()
            let scheme = lower.hasPrefix("http://") ? 7 : lower.hasPrefix("https://") ? 8 : 0
            guard scheme > 0 else {
                throw .badRequest("The request's target must be a path that starts with “/”.")
            }
            rest = rest.dropFirst(scheme)
            rest = rest.drop { $0 != "/" && $0 != "?" }
            if rest.isEmpty { return ("/", nil) }
        }
        guard let mark = rest.firstIndex(of: "?") else { return (String(rest), nil) }
        let path = rest[..<mark]
        return (path.isEmpty ? "/" : String(path), String(rest[rest.index(after: mark)...]))
    }

    // MARK: - Header lines

    private mutating func lines() throws(HTTPRefusal) -> [HTTPHeaders.Line] {
        var lines: [HTTPHeaders.Line] = []
        lines.reserveCapacity(12)
        while bytes[position] != UInt8(ascii: "\r") {
            guard lines.count < Self.maxLines else {
                throw HTTPRefusal(
                    status: 431, kind: "headTooLarge",
                    detail: "The request has more than \(Self.maxLines) header lines.")
            }
            lines.append(try line())
        }
        guard position + 2 == bytes.count else {
            throw .badRequest("A header line holds a lone CR.")
        }
        return lines
    }

    private mutating func line() throws(HTTPRefusal) -> HTTPHeaders.Line {
        let nameStart = position
        while Self.isToken(bytes[position]) { position += 1 }
        let nameEnd = position
        guard nameEnd > nameStart, bytes[position] == UInt8(ascii: ":") else {
            throw .badRequest("A header line does not start with a name and a colon.")
        }
        position += 1
        while Self.isBlank(bytes[position]) { position += 1 }
        let valueStart = position
        while Self.isValue(bytes[position]) { position += 1 }
        var valueEnd = position
        while valueEnd > valueStart, Self.isBlank(bytes[valueEnd - 1]) { valueEnd -= 1 }
        guard bytes[position] == UInt8(ascii: "\r"), bytes[position + 1] == UInt8(ascii: "\n")
        else {
            throw .badRequest("A header's value holds a control character.")
        }
        position += 2
        return HTTPHeaders.Line(
            nameStart: nameStart, nameEnd: nameEnd, valueStart: valueStart, valueEnd: valueEnd)
    }

    /// Returns whether a byte may be in a token (RFC 9110 §5.6.2).
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "!"), UInt8(ascii: "#"),
            UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"), UInt8(ascii: "'"),
            UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    static func isValue(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7f || byte == UInt8(ascii: "\t")
    }
}

// MARK: - What the headers mean

extension HeadParser {
    private func checkHost(_ headers: HTTPHeaders, minor: Int) throws(HTTPRefusal) {
        let count = headers.lineCount("host")
        guard count == 1 || (count == 0 && minor == 0) else {
            throw .badRequest("A request has exactly one Host header; this one has \(count).")
        }
    }

    /// Returns how the body is delimited (RFC 9112 §6). Every doubtful case is refused.
    private func framing(
        _ headers: HTTPHeaders, minor: Int
    ) throws(HTTPRefusal) -> RequestHead.Framing {
        let lengths = headers.values("content-length")
        let codings = headers.values("transfer-encoding")
        guard codings.isEmpty || lengths.isEmpty else {
            throw .badRequest("Content-Length and Transfer-Encoding exclude each other.")
        }
        if !codings.isEmpty {
            guard codings.count == 1, minor >= 1 else {
                throw .badRequest("Transfer-Encoding stands once, in HTTP/1.1 only.")
            }
            guard codings[0].lowercased() == "chunked" else {
                throw HTTPRefusal(
                    status: 501, kind: "notImplemented",
                    detail: "The only transfer coding this server reads is “chunked”.")
            }
            return .chunked
        }
        guard lengths.count <= 1 else {
            throw .badRequest("The request has \(lengths.count) Content-Length headers.")
        }
        guard let text = lengths.first else { return .length(0) }
        let isNumber = text.utf8.allSatisfy {
            $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")
        }
        guard isNumber, !text.isEmpty, text.utf8.count <= 18, let length = Int(text) else {
            throw .badRequest("Content-Length is not a number of bytes.")
        }
        return .length(length)
    }

    private func expectsContinue(
        _ headers: HTTPHeaders, minor: Int
    ) throws(HTTPRefusal) -> Bool {
        guard let expectation = headers["expect"], minor >= 1 else { return false }
        guard expectation.lowercased() == "100-continue" else {
            throw HTTPRefusal(
                status: 417, kind: "expectation",
                detail: "The only expectation this server meets is “100-continue”.")
        }
        return true
    }

    private static func keepsAlive(_ headers: HTTPHeaders, minor: Int) -> Bool {
        var keeps = minor >= 1
        for value in headers.values("connection") {
            for option in value.split(separator: ",") {
                switch option.lowercased().filter({ $0 != " " && $0 != "\t" }) {
                case "close": return false
                case "keep-alive": keeps = true
                default: break
                }
            }
        }
        return keeps
    }
}
