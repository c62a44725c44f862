/// Finds the parts that OR, or else AND, joins at the top of a condition.
enum ConditionParts {
    /// Returns the spans of the parts of a condition without its brackets.
    static func spans(of condition: ArraySlice<Token>) -> [TextSpan] {
        for word in ["or", "and"] {
            let parts = split(condition, at: word)
            if parts.count > 1 { return parts.compactMap(span) }
        }
        return [span(condition)].compactMap(\.self)
    }

    private static func span(_ tokens: ArraySlice<Token>) -> TextSpan? {
        guard let first = tokens.first, let last = tokens.last else { return nil }
        return TextSpan(start: first.position, end: last.end)
    }

    private static func split(_ tokens: ArraySlice<Token>, at word: String) -> [ArraySlice<Token>] {
        var parts: [ArraySlice<Token>] = []
        var start = tokens.startIndex
        var (depth, ranges) = (0, 0)
        for index in tokens.indices {
            let token = tokens[index]
            if token.isSign("(") { depth += 1 }
            if token.isSign(")") { depth -= 1 }
            guard depth == 0 else { continue }
            if token.isWord("between") { ranges += 1 }
            guard token.isWord(word) else { continue }
            if word == "and", ranges > 0 {
                // This one belongs to BETWEEN.
                ranges -= 1
                continue
            }
            parts.append(tokens[start..<index])
            start = index + 1
        }
        return parts + [tokens[start...]]
    }
}
