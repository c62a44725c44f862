/// Searches for text within text. All characters of the searched text are literal, except in
/// `like`. Null meets none of these conditions.
extension ColumnExpression where Value: TextColumnValue {
    /// Is met if the value contains a text.
    /// - Parameters:
    ///   - text: The text to search for.
    ///   - ignoringCase: Whether the letters A to Z equal the letters a to z. For other letters,
    ///     case always matters.
    public func contains(_ text: String, ignoringCase: Bool = false) -> Condition {
        guard ignoringCase else {
            return Condition(
                "(instr(" + fragment + ", " + SQLFragment(value: .text(text)) + ") > 0)")
        }
        return like("%" + Self.escaped(text) + "%", escape: true)
    }

    /// Is met if the value begins with a text. An index on the column can make this fast.
    /// - Parameters:
    ///   - text: The text to search for.
    ///   - ignoringCase: Whether the letters A to Z equal the letters a to z.
    public func hasPrefix(_ text: String, ignoringCase: Bool = false) -> Condition {
        ignoringCase
            ? like(Self.escaped(text) + "%", escape: true) : glob(Self.globbed(text) + "*")
    }

    /// Is met if the value ends with a text.
    /// - Parameters:
    ///   - text: The text to search for.
    ///   - ignoringCase: Whether the letters A to Z equal the letters a to z.
    public func hasSuffix(_ text: String, ignoringCase: Bool = false) -> Condition {
        ignoringCase
            ? like("%" + Self.escaped(text), escape: true) : glob("*" + Self.globbed(text))
    }

    /// Is met if the value matches a pattern, in which `%` stands for any text and `_` for one
    /// character. The letters A to Z match in either case.
    public func like(_ pattern: String) -> Condition { like(pattern, escape: false) }

    private func like(_ pattern: String, escape: Bool) -> Condition {
        let end = escape ? " ESCAPE '\\')" : ")"
        return Condition("(" + fragment + " LIKE " + SQLFragment(value: .text(pattern)) + end)
    }

    private func glob(_ pattern: String) -> Condition {
        Condition("(" + fragment + " GLOB " + SQLFragment(value: .text(pattern)) + ")")
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            if "%_\\".unicodeScalars.contains(character) { escaped += "\\" }
            escaped.unicodeScalars.append(character)
        }
        return escaped
    }

    /// Returns a GLOB pattern for the text. Brackets make a special character literal.
    private static func globbed(_ text: String) -> String {
        var globbed = ""
        for character in text.unicodeScalars {
            let isSpecial = "*?[".unicodeScalars.contains(character)
            if isSpecial { globbed += "[" }
            globbed.unicodeScalars.append(character)
            if isSpecial { globbed += "]" }
        }
        return globbed
    }
}
