extension Rule {
    private static let documented: Set = [
        "class", "struct", "enum", "protocol", "actor", "func", "typealias", "subscript", "macro",
    ]
    private static let modifiers: Set = [
        "static", "final", "mutating", "nonisolated", "indirect", "isolated", "consuming",
        "borrowing", "override", "convenience", "required", "lazy", "weak", "dynamic",
    ]
    /// Requirements of the standard library's protocols explain themselves.
    private static let known: Set = [
        "hash", "encode", "next", "makeAsyncIterator", "makeIterator", "index", "=", "<", "enqueue",
        "asUnownedSerialExecutor", "checkIsolated",
    ]

    static let documentation = Rule(name: "public API is documented") { file in
        guard file.target != nil, !House.isKit(file) else { return [] }
        return file.tokens.indices.compactMap { index in
            guard ["public", "open"].contains(file.tokens[index].text),
                let kind = declaration(file.tokens, after: index),
                let name = kind + 1 < file.tokens.count ? file.tokens[kind + 1].text : nil,
                !known.contains(name)
            else { return nil }
            let line = file.tokens[index].line
            guard !hasComment(file, above: line) else { return nil }
            return file.violation(
                line, "public \(file.tokens[kind].text) \(name) has no doc comment")
        }
    }

    static func declaration(_ tokens: [Token], after index: Int) -> Int? {
        var cursor = index + 1
        while cursor < tokens.count, modifiers.contains(tokens[cursor].text) { cursor += 1 }
        guard cursor < tokens.count, documented.contains(tokens[cursor].text) else { return nil }
        // `public class func` and the like: the function is what counts.
        if tokens[cursor].text == "class", cursor + 1 < tokens.count,
            tokens[cursor + 1].text == "func"
        {
            cursor += 1
        }
        return cursor
    }

    /// Attributes may stand between the comment and the declaration.
    private static func hasComment(_ file: SourceFile, above line: Int) -> Bool {
        var index = line - 2
        while index >= 0 {
            let text = file.lines[index].drop { $0 == " " }
            if text.hasPrefix("///") { return true }
            guard text.hasPrefix("@") || text.hasPrefix("#if") else { return false }
            index -= 1
        }
        return false
    }
}
