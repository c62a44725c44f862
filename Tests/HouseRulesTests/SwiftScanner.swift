/// One word or sign of Swift code, outside comments and string literals.
struct Token: Hashable {
    let text: String
    /// Counted from 1.
    let line: Int
    /// Whether nothing but blanks stands before it on its line.
    let opensLine: Bool
    /// Whether it stands right after another sign or word.
    let isAttached: Bool

    var isWord: Bool {
        guard let first = text.utf8.first else { return false }
        return SwiftScanner.isWordByte(first)
    }
}

/// Splits Swift code into tokens and leaves comments and the text of string literals out.
///
/// It knows what the house rules need (nested comments, raw and multi-line strings, interpolation)
/// and no more: regex literals and operators of several signs come out sign by sign.
struct SwiftScanner {
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    private var opensLine = true
    private(set) var tokens: [Token] = []

    static func tokens(of code: String) -> [Token] {
        var scanner = SwiftScanner(bytes: [UInt8](code.utf8))
        scanner.scanCode(untilParenthesis: false)
        return scanner.tokens
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
            true
        default: false
        }
    }

    private func peek(_ ahead: Int = 0) -> UInt8? {
        position + ahead < bytes.count ? bytes[position + ahead] : nil
    }

    private mutating func advance() {
        if bytes[position] == UInt8(ascii: "\n") {
            line += 1
            opensLine = true
        }
        position += 1
    }

    private mutating func emit(_ start: Int) {
        tokens.append(
            Token(
                text: String(decoding: bytes[start..<position], as: UTF8.self), line: line,
                opensLine: opensLine, isAttached: start > 0 && bytes[start - 1] > 32))
        opensLine = false
    }

    private mutating func scanCode(untilParenthesis: Bool) {
        var depth = 0
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                advance()
            case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "/"):
                while let next = peek(), next != UInt8(ascii: "\n") { advance() }
            case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "*"):
                skipBlockComment()
            case UInt8(ascii: "\""):
                scanString(hashes: 0)
            case UInt8(ascii: "#") where hashesBeforeQuote() > 0:
                let hashes = hashesBeforeQuote()
                for _ in 0..<hashes { advance() }
                scanString(hashes: hashes)
            default:
                if untilParenthesis, byte == UInt8(ascii: ")"), depth == 0 {
                    advance()
                    return
                }
                if byte == UInt8(ascii: "(") { depth += 1 }
                if byte == UInt8(ascii: ")") { depth -= 1 }
                scanToken(byte)
            }
        }
    }

    private mutating func scanToken(_ first: UInt8) {
        let start = position
        advance()
        if Self.isWordByte(first) {
            while let next = peek(), Self.isWordByte(next) { advance() }
        }
        emit(start)
    }

    private func hashesBeforeQuote() -> Int {
        var count = 0
        while peek(count) == UInt8(ascii: "#") { count += 1 }
        return peek(count) == UInt8(ascii: "\"") ? count : 0
    }

    private mutating func skipBlockComment() {
        var depth = 0
        while let byte = peek() {
            if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
                depth += 1
                advance()
            } else if byte == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
                depth -= 1
                advance()
            }
            advance()
            if depth == 0 { return }
        }
    }

    /// A literal leaves one token, a quote, so that `f("")` is not taken for `f()`.
    private mutating func scanString(hashes: Int) {
        let start = position
        let long = peek(1) == UInt8(ascii: "\"") && peek(2) == UInt8(ascii: "\"")
        advance()
        emit(start)
        if long {
            advance()
            advance()
        }
        while let byte = peek() {
            if byte == UInt8(ascii: "\\"), hasHashes(hashes, from: 1) {
                for _ in 0...hashes { advance() }
                guard let escaped = peek() else { return }
                advance()
                if escaped == UInt8(ascii: "(") { scanCode(untilParenthesis: true) }
            } else if byte == UInt8(ascii: "\""), closes(long: long, hashes: hashes) {
                for _ in 0..<((long ? 3 : 1) + hashes) { advance() }
                return
            } else {
                advance()
            }
        }
    }

    private func hasHashes(_ count: Int, from offset: Int) -> Bool {
        (0..<count).allSatisfy { peek(offset + $0) == UInt8(ascii: "#") }
    }

    private func closes(long: Bool, hashes: Int) -> Bool {
        let quotes = long ? 3 : 1
        return (0..<quotes).allSatisfy { peek($0) == UInt8(ascii: "\"") }
            && hasHashes(hashes, from: quotes)
    }
}
