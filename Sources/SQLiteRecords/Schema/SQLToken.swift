/// A token of SQL text. Comparing declarations by tokens ignores spaces, comments and the case of
/// bare words.
package struct SQLToken: Hashable {
    package enum Kind: Hashable {
        /// A bare word or number, with its ASCII letters in lower case.
        case word(String)
        /// A name in quotes or brackets, without them.
        case name(String)
        /// A string literal, as written.
        case literal(String)
        case symbol(UInt8)
    }

    package let kind: Kind
    /// Byte positions in the text.
    package let start: Int
    package let end: Int

    package static func == (left: SQLToken, right: SQLToken) -> Bool { left.kind == right.kind }
    package func hash(into hasher: inout Hasher) { hasher.combine(kind) }

    /// The name of this token, if it is a name, quoted or bare; nil otherwise.
    package var identifier: String? {
        switch kind {
        case .word(let text), .name(let text): text
        case .literal, .symbol: nil
        }
    }

    /// The name that a string literal stands for, if SQLite takes it for one; nil for other tokens.
    package var nameOfLiteral: String? {
        guard case .literal(let quoted) = kind else { return nil }
        return Self.unquoted(Array(quoted.utf8)[...])
    }

    package func isSymbol(_ symbol: Character) -> Bool {
        kind == symbol.asciiValue.map(Kind.symbol)
    }

    /// Returns the tokens of a text that SQLite has accepted. A quote or comment without an end
    /// extends to the end of the text.
    /// - Complexity: O(*n*) in the bytes.
    package static func tokens(of text: [UInt8]) -> [SQLToken] {
        var tokens: [SQLToken] = []
        var index = 0
        while index < text.count {
            let start = index
            let byte = text[index]
            switch byte {
            case UInt8(ascii: " "), 9, 10, 12, 13:
                index += 1
                continue
            case UInt8(ascii: "-") where at(index + 1, text) == UInt8(ascii: "-"):
                while index < text.count, text[index] != 10 { index += 1 }
                continue
            case UInt8(ascii: "/") where at(index + 1, text) == UInt8(ascii: "*"):
                index = endOfComment(text, from: index + 2)
                continue
            case UInt8(ascii: "'"):
                index = endOfQuote(text, from: index + 1, quote: byte)
                tokens.append(SQLToken(kind: .literal(string(text, start, index)), start, index))
            case UInt8(ascii: "\""), UInt8(ascii: "`"):
                index = endOfQuote(text, from: index + 1, quote: byte)
                let name = unquoted(text[start..<index])
                tokens.append(SQLToken(kind: .name(name), start, index))
            case UInt8(ascii: "["):
                while index < text.count, text[index] != UInt8(ascii: "]") { index += 1 }
                index = min(index + 1, text.count)
                let inner = string(text, start + 1, max(start + 1, index - 1))
                tokens.append(SQLToken(kind: .name(inner), start, index))
            case let byte where isWordByte(byte):
                while index < text.count, isWordByte(text[index]) { index += 1 }
                let word = SQLName.folded(string(text, start, index))
                tokens.append(SQLToken(kind: .word(word), start, index))
            default:
                index += 1
                tokens.append(SQLToken(kind: .symbol(byte), start, index))
            }
        }
        return tokens
    }

    /// Returns the text between two quotes, in which each quote is written twice. It goes by bytes,
    /// because a quote and the letter after it may be one Swift character.
    private static func unquoted(_ text: ArraySlice<UInt8>) -> String {
        var inner: [UInt8] = []
        var isSecond = false
        for byte in text.dropFirst().dropLast() {
            let isQuote = byte == text.first
            if isQuote, isSecond {
                isSecond = false
            } else {
                isSecond = isQuote
                inner.append(byte)
            }
        }
        return String(decoding: inner, as: UTF8.self)
    }

    private static let beforeTables: Set<String> = [
        "references", "on", "from", "join", "into", "update",
    ]

    /// Returns the tokens with names of tables as bare words. SQLite puts them in quotes when a
    /// table is renamed, so a declaration has them even after the table got its name back.
    package static func withPlainTables(_ tokens: [SQLToken]) -> [SQLToken] {
        tokens.indices.map { index in
            let token = tokens[index]
            guard case .name(let name) = token.kind else { return token }
            var isTable = tokens.indices.contains(index + 1) && tokens[index + 1].isSymbol(".")
            if index > 0, case .word(let word) = tokens[index - 1].kind {
                isTable = isTable || beforeTables.contains(word)
            }
            return isTable
                ? SQLToken(kind: .word(SQLName.folded(name)), token.start, token.end) : token
        }
    }

    /// Words that name a column only if they are in quotes.
    private static let reserved: Set<String> = [
        "null", "current_date", "current_time", "current_timestamp",
    ]

    /// Returns the tokens with names of columns as bare words. SQLite puts them in quotes when a
    /// column is renamed to a name in quotes, so a declaration has them even after the column got
    /// its name back.
    /// - Parameter columns: The folded names.
    package static func withPlainColumns(
        _ tokens: [SQLToken], _ columns: Set<String>
    ) -> [SQLToken] {
        tokens.map { token in
            guard case .name(let name) = token.kind else { return token }
            let word = SQLName.folded(name)
            guard columns.contains(word), !reserved.contains(word) else { return token }
            return SQLToken(kind: .word(word), token.start, token.end)
        }
    }

    private init(kind: Kind, _ start: Int, _ end: Int) {
        self.kind = kind
        self.start = start
        self.end = end
    }

    private static func at(_ index: Int, _ text: [UInt8]) -> UInt8? {
        index < text.count ? text[index] : nil
    }

    private static func string(_ text: [UInt8], _ start: Int, _ end: Int) -> String {
        String(decoding: text[start..<end], as: UTF8.self)
    }

    /// Returns whether a byte is part of a word. For SQLite, this is every byte of a character
    /// outside ASCII.
    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122, 128...255, UInt8(ascii: "_"), UInt8(ascii: "$"): true
        default: false
        }
    }

    private static func endOfQuote(_ text: [UInt8], from start: Int, quote: UInt8) -> Int {
        var index = start
        while index < text.count {
            if text[index] == quote {
                guard at(index + 1, text) == quote else { return index + 1 }
                index += 1
            }
            index += 1
        }
        return index
    }

    private static func endOfComment(_ text: [UInt8], from start: Int) -> Int {
        var index = start
        while index < text.count {
            if text[index] == UInt8(ascii: "*"), at(index + 1, text) == UInt8(ascii: "/") {
                return index + 2
            }
            index += 1
        }
        return index
    }
}
