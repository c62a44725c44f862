import Foundation

/// The words that docs/words.md says are not used, each with the word to use.
struct RetiredWords {
    /// A name whose parts stand in no longer name, in lower case, and what to say instead.
    private var names: [(parts: [Substring], instead: String)] = []
    /// Names of types that are one word, which prose may use.
    private var types: [String: String] = [:]
    /// Words of prose, in lower case.
    private var phrases: [(text: String, instead: String)] = []

    /// Reads the table: a row has the retired word in backquotes, then the word to use.
    init(_ page: String) {
        let row = #/(?m)^\| `([^`]+)`[^|]* \| ([^|]+) \|$/#
        for match in page.matches(of: row) {
            let (word, instead) = (String(match.1), String(match.2))
            if word.contains(" ") {
                phrases.append((word.lowercased(), instead))
            } else if Self.parts(of: word).count == 1, word.first?.isUppercase == true {
                types[word] = instead
            } else {
                names.append((Self.parts(of: word), instead))
            }
        }
    }

    var count: Int { names.count + types.count + phrases.count }

    /// Splits a name at its capital letters: `takeOutside` gives “take” and “outside”.
    static func parts(of name: String) -> [Substring] {
        var parts: [String] = []
        for character in name {
            if character.isUppercase || parts.isEmpty { parts.append("") }
            parts[parts.count - 1] += character.lowercased()
        }
        return parts.map { Substring($0) }
    }

    /// Returns where a file uses a retired word. A word alone may be a word of English; names of SQL, which have an
    /// underscore, and names that fill a whole literal stay for the sake of files that exist. “Foreign key” is SQL's
    /// own term.
    func violations(in file: SourceFile) -> [Violation] {
        let typed = file.tokens.compactMap { token in
            types[token.text].map {
                file.violation(token.line, "“\(token.text)” is not used; say \($0)")
            }
        }
        return typed
            + file.lines.enumerated().flatMap { index, line -> [Violation] in
                let lowered = line.lowercased()
                let said = phrases.filter { lowered.contains($0.text) }.map {
                    ($0.text, $0.instead)
                }
                let named = line.matches(of: #/[A-Za-z][A-Za-z0-9]*(?![A-Za-z0-9_])/#).compactMap {
                    match in
                    retired(
                        match.output, before: line[..<match.range.lowerBound].utf8.last,
                        after: line[match.range.upperBound...].utf8.first)
                }
                return (said + named).map { word, instead in
                    file.violation(index + 1, "“\(word)” is not used; say \(instead)")
                }
            }
    }

    private func retired(
        _ name: Substring, before: UInt8?, after: UInt8?
    ) -> (String, String)? {
        let isLiteral =
            before == after && (before == UInt8(ascii: "'") || before == UInt8(ascii: "\""))
        guard before != UInt8(ascii: "_"), !isLiteral else { return nil }
        let parts = Self.parts(of: String(name))
        guard parts.count > 1 else { return nil }
        for (retired, instead) in names where retired.count <= parts.count {
            for start in 0...(parts.count - retired.count) {
                let next = start + retired.count
                guard Array(parts[start..<next]) == retired,
                    next == parts.count || !parts[next].hasPrefix("key")
                else { continue }
                return (String(name), instead)
            }
        }
        return nil
    }
}

extension RetiredWords {
    /// Those of docs/words.md.
    static let own = Result {
        RetiredWords(
            try String(
                contentsOf: Repository.root.appendingPathComponent("docs/words.md"), encoding: .utf8
            ))
    }
}

extension Rule {
    /// Decisions and the changelog tell of their time, and this page lists the words.
    private static let toldAsTheyWere = ["docs/decisions/", "CHANGELOG.md", "docs/words.md"]

    static let retiredWords = Rule(name: "no retired words") { file in
        guard file.isSwift || file.path.hasSuffix(".md"),
            !toldAsTheyWere.contains(where: { file.path.hasPrefix($0) }),
            !file.path.hasPrefix("Tests/HouseRulesTests/"), let words = try? RetiredWords.own.get()
        else { return [] }
        return words.violations(in: file)
    }
}
