/// Looking for text within text. What is looked for is taken literally, except in `like`; null
/// meets none of these.
extension ColumnExpression where Value: TextColumnValue {
    /// Holds a text anywhere.
    /// - Parameters:
    ///   - text: What is looked for.
    ///   - ignoringCase: Whether the letters A to Z and a to z are the same; others never are.
    public func contains(_ text: String, ignoringCase: Bool = false) -> Condition {
        guard ignoringCase else {
            return Condition(
                "(instr(" + fragment + ", " + SQLFragment(value: .text(text)) + ") > 0)")
        }
        return like("%" + Self.escaped(text) + "%", escape: true)
    }

    /// Begins with a text. An index on the column helps.
    /// - Parameters:
    ///   - text: What is looked for.
    ///   - ignoringCase: As in `contains`.
    public func hasPrefix(_ text: String, ignoringCase: Bool = false) -> Condition {
        ignoringCase
            ? like(Self.escaped(text) + "%", escape: true) : glob(Self.globbed(text) + "*")
    }

    /// Ends with a text.
    /// - Parameters:
    ///   - text: What is looked for.
    ///   - ignoringCase: As in `contains`.
    public func hasSuffix(_ text: String, ignoringCase: Bool = false) -> Condition {
        ignoringCase
            ? like("%" + Self.escaped(text), escape: true) : glob("*" + Self.globbed(text))
    }

    /// Matches a pattern in which `%` stands for any text and `_` for one character; the letters A
    /// to Z match whatever their case.
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

    /// In a GLOB pattern a character is taken literally within brackets.
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
