extension Rule {
    static let longestFile = 500
    static let longestFunction = 70

    static let fileLength = Rule(name: "file length") { file in
        let count = file.lines.last?.isEmpty == true ? file.lines.count - 1 : file.lines.count
        guard file.isSwift, count > longestFile else { return [] }
        return [
            file.violation(count, "\(count) lines; at most \(longestFile): split by type or topic")
        ]
    }

    static let functionLength = Rule(name: "function length") { file in
        file.tokens.indices.compactMap { index in
            guard opensFunction(file.tokens, index), let body = body(file.tokens, after: index)
            else { return nil }
            let count = body.upperBound - body.lowerBound + 1
            guard count > longestFunction else { return nil }
            return file.violation(
                file.tokens[index].line,
                "a function of \(count) lines; at most \(longestFunction)")
        }
    }

    private static func opensFunction(_ tokens: [Token], _ index: Int) -> Bool {
        let previous = index > 0 ? tokens[index - 1].text : ""
        let next = index + 1 < tokens.count ? tokens[index + 1].text : ""
        switch tokens[index].text {
        case "func", "subscript": return previous != "." && previous != "case"
        case "deinit": return next == "{"
        case "init": return previous != "." && ["(", "?", "!", "<"].contains(next)
        case "var": return next != "" && previous != "." && previous != "case"
        default: return false
        }
    }

    /// The lines from the opening to the closing brace; nil where the declaration has no body.
    private static func body(_ tokens: [Token], after index: Int) -> ClosedRange<Int>? {
        var cursor = index + 1
        var nesting = 0
        while cursor < tokens.count {
            let token = tokens[cursor]
            switch token.text {
            case "(", "[": nesting += 1
            case ")", "]": nesting -= 1
            case "{" where nesting == 0:
                return closing(tokens, from: cursor)
            case "}", "=":
                if nesting == 0 { return nil }
            default:
                if nesting == 0, token.opensLine, endsDeclaration(token.text) { return nil }
            }
            cursor += 1
        }
        return nil
    }

    private static func endsDeclaration(_ word: String) -> Bool {
        [
            "func", "var", "let", "init", "subscript", "static", "mutating", "case", "struct",
            "class", "enum", "extension", "protocol", "actor", "public", "package", "private",
            "internal", "fileprivate", "associatedtype", "typealias", "@", "#", "if", "guard",
            "return", "for", "while", "switch", "defer", "do", "import",
        ].contains(word)
    }

    private static func closing(_ tokens: [Token], from open: Int) -> ClosedRange<Int>? {
        var depth = 0
        for cursor in open..<tokens.count {
            if tokens[cursor].text == "{" { depth += 1 }
            if tokens[cursor].text == "}" {
                depth -= 1
                if depth == 0 { return tokens[open].line...tokens[cursor].line }
            }
        }
        return nil
    }
}
