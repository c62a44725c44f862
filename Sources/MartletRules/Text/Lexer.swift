/// Splits a rules file into tokens, as PostgreSQL reads SQL.
///
/// Words without quotes are folded to lower case. Comments are `--` to the end of the line, and
/// `/* … */`, which nest.
struct Lexer {
    private let scalars: [Unicode.Scalar]
    private var index = 0
    private var position = TextPosition()

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    /// Returns the tokens of a text, with `end` as the last one.
    /// - Throws: `RulesFault` if a text, name or comment does not end, or a sign is unknown.
    static func tokens(of text: String) throws(RulesFault) -> [Token] {
        var lexer = Lexer(text)
        var tokens: [Token] = []
        repeat { tokens.append(try lexer.next()) } while tokens.last?.kind != .end
        return tokens
    }

    private var current: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }
    private var following: Unicode.Scalar? {
        index + 1 < scalars.count ? scalars[index + 1] : nil
    }

    private mutating func advance() {
        if current == "\n" {
            position.line += 1
            position.column = 1
        } else {
            position.column += 1
        }
        index += 1
        position.offset = index
    }

    private mutating func take(while condition: (Unicode.Scalar) -> Bool) -> String {
        let start = index
        while let character = current, condition(character) { advance() }
        return String(String.UnicodeScalarView(scalars[start..<index]))
    }

    private mutating func next() throws(RulesFault) -> Token {
        try skipSpace()
        let start = position
        guard let character = current else {
            return Token(kind: .end, position: start, end: start)
        }
        let kind: Token.Kind
        if character == "'" {
            kind = .text(try quoted("'", "text", from: start))
        } else if character == "\"" {
            let name = try quoted("\"", "name", from: start)
            if name.isEmpty { throw RulesFault("a name is empty", at: start) }
            kind = .name(name)
        } else if Self.isDigit(character) || character == "." && following.map(Self.isDigit) == true
        {
            kind = number()
        } else if Self.isLetter(character) {
            if "eEbBxXnN".unicodeScalars.contains(character), following == "'" {
                throw RulesFault(
                    "a text with the prefix “\(character)” is not supported", at: start,
                    remedy: "write a plain text: 'it''s'")
            }
            let word = take { Self.isLetter($0) || Self.isDigit($0) || $0 == "$" }
            kind = .word(Self.folded(word))
        } else {
            kind = .sign(try sign(character, from: start))
        }
        return Token(kind: kind, position: start, end: position)
    }

    /// Returns a name without quotes as PostgreSQL folds it: the letters A to Z become small.
    private static func folded(_ word: String) -> String {
        String(
            String.UnicodeScalarView(
                word.unicodeScalars.map { scalar in
                    "A"..."Z" ~= scalar ? Unicode.Scalar(UInt8(scalar.value) + 32) : scalar
                }))
    }

    /// Whether a name may begin with a scalar: all that is not ASCII may be in a name.
    private static func isLetter(_ character: Unicode.Scalar) -> Bool {
        switch character {
        case "a"..."z", "A"..."Z", "_": true
        default: !character.isASCII
        }
    }

    private static func isDigit(_ character: Unicode.Scalar) -> Bool { "0"..."9" ~= character }

    private mutating func skipSpace() throws(RulesFault) {
        while let character = current {
            if " \t\n\r\u{B}\u{C}".unicodeScalars.contains(character) {
                advance()
            } else if character == "-", following == "-" {
                _ = take { $0 != "\n" }
            } else if character == "/", following == "*" {
                try skipComment()
            } else {
                return
            }
        }
    }

    private mutating func skipComment() throws(RulesFault) {
        let start = position
        var depth = 0
        repeat {
            guard let character = current else {
                throw RulesFault("a comment does not end", at: start, remedy: "write “*/”")
            }
            if character == "/", following == "*" {
                depth += 1
                advance()
            } else if character == "*", following == "/" {
                depth -= 1
                advance()
            }
            advance()
        } while depth > 0
    }

    private mutating func quoted(
        _ quote: Unicode.Scalar, _ what: String, from start: TextPosition
    ) throws(RulesFault) -> String {
        advance()
        var text = String.UnicodeScalarView()
        while let character = current {
            advance()
            if character == quote {
                guard current == quote else { return String(text) }
                advance()
            }
            if character == "\0" {
                throw RulesFault("a \(what) contains NUL", at: start)
            }
            text.append(character)
        }
        throw RulesFault(
            "a \(what) does not end", at: start, remedy: "write “\(quote)” behind it")
    }

    private mutating func number() -> Token.Kind {
        var digits = take(while: Self.isDigit)
        var isDecimal = false
        if current == ".", following != "." {
            isDecimal = true
            advance()
            digits += "." + take(while: Self.isDigit)
        }
        if current == "e" || current == "E" {
            let isSigned = following == "+" || following == "-"
            let digit = isSigned ? index + 2 : index + 1
            if digit < scalars.count, Self.isDigit(scalars[digit]) {
                isDecimal = true
                for _ in index..<digit {
                    digits.unicodeScalars.append(scalars[index])
                    advance()
                }
                digits += take(while: Self.isDigit)
            }
        }
        return isDecimal ? .decimal(digits) : .integer(digits)
    }

    private mutating func sign(
        _ character: Unicode.Scalar, from start: TextPosition
    ) throws(RulesFault) -> String {
        if let sign = try patternSign(start) { return sign }
        if let following {
            let pair = "\(character)\(following)"
            if ["<=", ">=", "<>", "!=", "::", "||"].contains(pair) {
                advance()
                advance()
                return pair == "!=" ? "<>" : pair
            }
        }
        guard "()[]+-*/%<>=,.;".unicodeScalars.contains(character) else {
            throw RulesFault("the sign “\(character)” is not supported", at: start)
        }
        advance()
        return String(character)
    }

    /// Operators of PostgreSQL that begin with a sign of their own or with a supported one, and the
    /// advice for those that are not supported.
    private static let operators: [(sign: String, remedy: String?)] = [
        ("!~~*", "letters are compared as they are: write NOT LIKE"),
        ("~~*", "letters are compared as they are: write LIKE"), ("!~~", nil), ("~~", nil),
        ("!~*", "write NOT LIKE"), ("!~", "write NOT LIKE"), ("~*", "write LIKE"),
        ("~", "write LIKE"), ("->>", claims), ("->", claims), ("#>>", claims), ("#>", claims),
        ("@>", "write IN (…) or EXISTS (…)"), ("<@", "write IN (…) or EXISTS (…)"),
        ("&&", "write EXISTS (…)"),
    ]
    private static let claims =
        "write martlet_claim('NAME') for a claim of the token, or martlet_role('NAME')"

    /// Reads the operators that PostgreSQL writes for LIKE.
    /// - Returns: The operator; nil if none stands here.
    /// - Throws: `RulesFault` for other operators of these signs.
    private mutating func patternSign(_ start: TextPosition) throws(RulesFault) -> String? {
        let rest = String(String.UnicodeScalarView(scalars[index..<min(index + 4, scalars.count)]))
        guard let (sign, remedy) = Self.operators.first(where: { rest.hasPrefix($0.sign) })
        else { return nil }
        if let remedy {
            throw RulesFault(
                "the operator “\(sign)” is not supported", at: start, remedy: remedy)
        }
        for _ in sign.unicodeScalars { advance() }
        return sign
    }
}
