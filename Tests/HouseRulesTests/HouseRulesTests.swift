import Testing

@Suite("House rules")
struct HouseRulesTests {
    @Test("every file keeps every rule", arguments: Rule.all.map(\.name))
    func kept(name: String) throws {
        let rule = try #require(Rule.all.first { $0.name == name })
        let found = try Repository.files().flatMap(rule.check)
        let listing = found.map(\.description).joined(separator: "\n")
        #expect(found.isEmpty, "\(name):\n\(listing)")
    }

    @Test("the files are found at all")
    func filesAreFound() throws {
        let files = try Repository.files()
        #expect(files.contains { $0.path == "Package.swift" })
        #expect(files.filter { $0.target != nil }.count > 30)
        #expect(!files.contains { $0.path.contains(".build/") })
    }

    @Test("every Swift target builds with the strict flags, all but kits and tests memory-safe")
    func strictFlags() throws {
        let manifest = try #require(try Repository.files().first { $0.path == "Package.swift" })
        #expect(PackageFlags.unflagged(manifest).isEmpty)
        let loose = SourceFile(
            path: "Package.swift",
            text: """
                let package = Package(targets: [
                    .target(name: "A", dependencies: ["B"]),
                    .target(name: "B", swiftSettings: strict),
                    .target(name: "SQLiteKit", swiftSettings: strict),
                    .testTarget(name: "T", swiftSettings: strict),
                    .target(name: "D", path: "Tests/D", swiftSettings: strict),
                    .systemLibrary(name: "C"),
                ])
                """)
        #expect(PackageFlags.unflagged(loose).count == 2)
    }
}

/// Reads the flags of the targets from the manifest.
enum PackageFlags {
    /// The places of targets without the flags they should have.
    static func unflagged(_ manifest: SourceFile) -> [Violation] {
        let kinds: Set = ["target", "executableTarget", "testTarget"]
        let tokens = manifest.tokens
        return tokens.indices.compactMap { index -> Violation? in
            guard kinds.contains(tokens[index].text), index > 0, tokens[index - 1].text == ".",
                index + 1 < tokens.count, tokens[index + 1].text == "("
            else { return nil }
            let settings = settings(tokens, from: index + 1)
            let line = tokens[index].line
            let declaration = manifest.lines[(line - 1)..<(settings?.line ?? line)].joined()
            let isLoose =
                tokens[index].text == "testTarget" || declaration.contains("path: \"Tests/")
                || House.kits.keys.contains { declaration.contains("name: \"\($0)\"") }
            if settings?.word == "safe" || (settings?.word == "strict" && isLoose) { return nil }
            return manifest.violation(
                line, "swiftSettings: \(settings?.word ?? "none"); expected safe, or strict")
        }
    }

    /// The word after `swiftSettings:` within the parentheses that open at a token.
    private static func settings(
        _ tokens: [Token], from open: Int
    ) -> (word: String, line: Int)? {
        var depth = 0
        for index in open..<tokens.count {
            if tokens[index].text == "(" { depth += 1 }
            if tokens[index].text == ")" {
                depth -= 1
                if depth == 0 { return nil }
            }
            if tokens[index].text == "swiftSettings", index + 2 < tokens.count {
                return (tokens[index + 2].text, tokens[index].line)
            }
        }
        return nil
    }
}
