extension Rule {
    /// A coder throws what its container throws.
    private static let coding: Set = ["encode", "decode"]

    private static let kinds: Set = [
        "func", "init", "subscript", "var", "let", "struct", "class", "enum", "protocol", "actor",
        "extension", "typealias",
    ]

    static let throwing = Rule(name: "a public function that throws says what") { file in
        guard file.target != nil, !House.isKit(file) else { return [] }
        return file.tokens.indices.compactMap { index in
            guard file.tokens[index].text == "public",
                let name = throwingFunction(file.tokens, after: index), !coding.contains(name)
            else { return nil }
            let line = file.tokens[index].line
            // What implements a requirement without a comment has the requirement's.
            let comment = comment(of: file, above: line).filter { $0.contains("///") }
            guard !comment.isEmpty, !comment.contains(where: { $0.contains("- Throws:") })
            else { return nil }
            return file.violation(line, "\(name) throws, and its comment does not say what")
        }
    }

    /// Returns the name of the function, initialiser or subscript that is declared behind an access level, if it
    /// throws.
    private static func throwingFunction(_ tokens: [Token], after index: Int) -> String? {
        guard
            let kind = tokens[(index + 1)...].prefix(6).firstIndex(where: {
                kinds.contains(
                    $0.text)
            }), ["func", "init", "subscript"].contains(tokens[kind].text), kind + 1 < tokens.count
        else { return nil }
        let name = tokens[kind].text == "func" ? tokens[kind + 1].text : tokens[kind].text
        var depth = 0
        var hasParameters = false
        for position in (kind + 1)..<tokens.count {
            switch tokens[position].text {
            case "(", "[":
                depth += 1
            case ")", "]":
                depth -= 1
                hasParameters = true
            case "{" where depth == 0: return nil
            case "throws" where depth == 0 && hasParameters: return name
            case "from"
            where tokens[kind].text == "init" && position == kind + 2
                && position + 1 < tokens.count && tokens[position + 1].text == "decoder":
                return nil
            default: break
            }
        }
        return nil
    }

    static func comment(of file: SourceFile, above line: Int) -> [Substring] {
        file.lines[..<(line - 1)].reversed().prefix { line in
            let text = line.drop { $0 == " " }
            return text.hasPrefix("///") || text.hasPrefix("@") || text.hasPrefix("#if")
        }
    }
}
