/// Matches texts with the patterns of LIKE.
enum LikePattern {
    /// Returns whether a text matches: `%` stands for any text, `_` for one character.
    /// - Parameter escape: The character before a sign that stands for itself; nil for none.
    /// - Throws: `RuleValueFault` if the pattern ends with the escape character.
    /// - Complexity: O(*n* · *m*), the lengths of text and pattern; no recursion.
    static func matches(
        _ text: String, _ pattern: String, escape: Unicode.Scalar?
    ) throws(RuleValueFault) -> Bool {
        enum Part { case one, many, itself(Unicode.Scalar) }
        var parts: [Part] = []
        var isEscaped = false
        for scalar in pattern.unicodeScalars {
            if isEscaped {
                parts.append(.itself(scalar))
                isEscaped = false
            } else if scalar == escape {
                isEscaped = true
            } else {
                parts.append(scalar == "%" ? .many : (scalar == "_" ? .one : .itself(scalar)))
            }
        }
        if isEscaped { throw RuleValueFault("a pattern of LIKE ends with its escape character") }
        let scalars = Array(text.unicodeScalars)
        // After a “%” that fits too little of the text, it takes one character more.
        var (next, index) = (0, 0)
        var retry: (part: Int, index: Int)?
        while index < scalars.count {
            if next < parts.count {
                switch parts[next] {
                case .many:
                    retry = (next, index)
                    next += 1
                    continue
                case .one:
                    next += 1
                    index += 1
                    continue
                case .itself(let scalar) where scalar == scalars[index]:
                    next += 1
                    index += 1
                    continue
                case .itself: break
                }
            }
            guard let last = retry else { return false }
            retry = (last.part, last.index + 1)
            (next, index) = (last.part + 1, last.index + 1)
        }
        return parts[next...].allSatisfy { if case .many = $0 { true } else { false } }
    }
}
