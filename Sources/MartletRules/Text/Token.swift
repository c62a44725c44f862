/// A word, a literal or a sign of a rules file, and its position.
struct Token: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A name or key word without quotes, in lower case.
        case word(String)
        /// A name in double quotes, as it is.
        case name(String)
        case text(String)
        /// Digits without a fraction.
        case integer(String)
        /// Digits with a fraction or an exponent.
        case decimal(String)
        case sign(String)
        case end
    }

    let kind: Kind
    let position: TextPosition
    /// The position behind the token.
    let end: TextPosition

    /// The token as a message shows it.
    var shown: String {
        switch kind {
        case .word(let word): "“\(word)”"
        case .name(let name): "“\"\(name)\"”"
        case .text(let text): "the text “'\(text)'”"
        case .integer(let digits), .decimal(let digits): "“\(digits)”"
        case .sign(let sign): "“\(sign)”"
        case .end: "the end of the file"
        }
    }

    func isWord(_ word: String) -> Bool { kind == .word(word) }
    /// Whether it is a text in quotes.
    var isText: Bool { if case .text = kind { true } else { false } }
    func isSign(_ sign: String) -> Bool { kind == .sign(sign) }
}
