import Foundation

/// A file of the repository, as the rules see it.
struct SourceFile {
    /// Relative to the repository, with `/`.
    let path: String
    let lines: [Substring]
    let tokens: [Token]

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        tokens = path.hasSuffix(".swift") ? SwiftScanner.tokens(of: text) : []
    }

    var components: [Substring] { path.split(separator: "/") }

    /// The name of the target under `Sources`; nil for other files.
    var target: String? {
        let parts = components
        return parts.count > 2 && parts[0] == "Sources" ? String(parts[1]) : nil
    }

    var isSwift: Bool { path.hasSuffix(".swift") }

    /// The words imported, each with its line.
    var imports: [(module: String, line: Int)] {
        tokens.indices.compactMap { index in
            guard tokens[index].text == "import", index + 1 < tokens.count else { return nil }
            var next = index + 1
            let kinds: Set = ["struct", "class", "enum", "protocol", "func", "var", "let"]
            if kinds.contains(tokens[next].text), next + 1 < tokens.count { next += 1 }
            return (tokens[next].text, tokens[index].line)
        }
    }

    /// Every line where `words` follow one another.
    func occurrences(of words: [String]) -> [Int] {
        guard tokens.count >= words.count else { return [] }
        return (0...(tokens.count - words.count)).filter { start in
            words.indices.allSatisfy { tokens[start + $0].text == words[$0] }
        }
    }
}

/// The files the rules are about, read from disk.
enum Repository {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Folders that tools write into.
    private static let skipped: Set = [
        ".git", ".build", ".swiftpm", ".cache", "node_modules", "martlet-demo",
    ]
    private static let textEndings: Set = [
        "swift", "md", "h", "modulemap", "sh", "yml", "yaml", "json", "sql", "conf", "txt", "py",
        "",
    ]

    /// Read and split into tokens once, for all rules.
    private static let all = Result {
        var found: [SourceFile] = []
        try visit(root, relative: "", into: &found)
        return found
    }

    static func files() throws -> [SourceFile] {
        try all.get()
    }

    private static func visit(
        _ folder: URL, relative: String, into found: inout [SourceFile]
    ) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        for name in names where !skipped.contains(name) {
            let url = folder.appendingPathComponent(name)
            let path = relative.isEmpty ? name : relative + "/" + name
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
                continue
            }
            if isFolder.boolValue {
                try visit(url, relative: path, into: &found)
            } else if textEndings.contains(url.pathExtension),
                let text = try? String(contentsOf: url, encoding: .utf8)
            {
                found.append(SourceFile(path: path, text: text))
            }
        }
    }
}
