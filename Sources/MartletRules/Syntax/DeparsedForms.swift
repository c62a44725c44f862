/// The forms in which PostgreSQL shows LIKE, lists and collations: `~~`, `= ANY (ARRAY[…])`.
extension ExpressionReader {
    /// Reads `ANY (…)` or `ALL (…)` behind a comparison.
    /// - Returns: What it says; nil if neither stands here.
    mutating func quantified(
        _ comparison: Comparison, _ left: Expression
    ) throws(RulesFault) -> Expression.Content? {
        guard case .word(let word) = tokens.current.kind, ["any", "some", "all"].contains(word)
        else { return nil }
        guard comparison == (word == "all" ? .unequal : .equal) else {
            throw RulesFault(
                "“\(comparison.rawValue) \(word.uppercased())” is not supported",
                at: tokens.position, remedy: "write = ANY (…), <> ALL (…), or EXISTS (…)")
        }
        tokens.advance()
        try tokens.expectSign("(")
        let content: Expression.Content
        if tokens.current.isWord("select") {
            content = .among(left, try query(), isNegated: word == "all")
        } else {
            content = .list(left, try array(), isNegated: word == "all")
        }
        try tokens.expectSign(")")
        return content
    }

    /// Reads `ARRAY[…]`, which may stand in brackets and have a cast behind it.
    private mutating func array() throws(RulesFault) -> [Expression] {
        var list: [Expression] = []
        if tokens.skipSign("(") {
            list = try deeper { (reader) throws(RulesFault) in try reader.array() }
            try tokens.expectSign(")")
        } else if tokens.skip("array") {
            try tokens.expectSign("[")
            while !tokens.current.isSign("]") {
                list.append(try expression())
                guard tokens.skipSign(",") else { break }
            }
            try tokens.expectSign("]")
        } else {
            throw tokens.unexpected("ARRAY[…] or SELECT")
        }
        guard tokens.skipSign("::") else { return list }
        let type = try typeName()
        try tokens.expectSign("[")
        try tokens.expectSign("]")
        return list.map { Expression(position: $0.position, content: .cast($0, type: type)) }
    }

    /// Reads the pattern behind `~~`, which is `like_escape(pattern, sign)` if it has an ESCAPE.
    mutating func pattern(
        of operand: Expression, isNegated: Bool
    ) throws(RulesFault) -> Expression.Content {
        let pattern = try sum()
        if case .call("like_escape", let parts) = pattern.content, parts.count == 2 {
            return .like(operand, parts[0], escape: parts[1], isNegated: isNegated)
        }
        return .like(operand, pattern, escape: nil, isNegated: isNegated)
    }

    /// Passes over COLLATE "C", which says how texts are compared anyway.
    mutating func collation() throws(RulesFault) {
        let start = tokens.position
        tokens.advance()
        var name = try tokens.name("a collation").name
        if name == "pg_catalog", tokens.skipSign(".") { name = try tokens.name("a collation").name }
        guard name == "C" || name == "POSIX" else {
            throw RulesFault(
                "the collation “\(name)” is not supported: texts are compared by their bytes",
                at: start, remedy: "write COLLATE \"C\", or leave it out")
        }
    }
}
