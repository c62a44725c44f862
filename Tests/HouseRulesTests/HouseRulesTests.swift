import Testing

@Suite("House rules")
struct HouseRulesTests {
    @Test("every file keeps every rule", arguments: Rule.all.map(\.name))
    func keptRules(name: String) throws {
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

    @Test("the types that need an example exist")
    func exemplified() throws {
        let found = try Repository.files().filter { $0.target != nil }
            .flatMap(Rule.exemplifiedTypes).map(\.name)
        #expect(found.sorted() == Rule.exemplified.sorted())
    }

    @Test("Package.swift names targets that stand before, and that are imported")
    func manifest() throws {
        let manifest = try Manifest.own.get()
        #expect(manifest.targets.count > 80)
        #expect(manifest.faults(try Repository.files()) == [])
    }

    @Test("ARCHITECTURE.md states the order of every target's folders")
    func floors() throws {
        let files = try Repository.files()
        let page = try #require(files.first { $0.path == "ARCHITECTURE.md" })
        let orders = Floors.orders(page.lines.joined(separator: "\n"))
        #expect(Floors.faults(files, orders) == [])
        #expect(try Floors.own.get().keys.sorted() == orders.keys.sorted())
    }

    @Test(
        "every Swift target builds with the strict flags, all but kits and most tests memory-safe")
    func strictFlags() throws {
        let manifest = try #require(try Repository.files().first { $0.path == "Package.swift" })
        #expect(PackageFlags.functions(manifest) == PackageFlags.expected)
        let loose = SourceFile(
            path: "Package.swift",
            text: """
                func kit() -> Target { .target(name: name, swiftSettings: Flags.strict) }
                func code() -> Target { .target(name: name) }
                """)
        #expect(PackageFlags.functions(loose) == ["kit": "strict", "code": "none"])
        let wrappers: Set = ["SQLiteFaults", "SocketTalk"]
        #expect(
            try Manifest.own.get().targets.filter { $0.kind == "kit" }
                .allSatisfy { $0.name.hasSuffix("Kit") || wrappers.contains($0.name) })
    }
}

/// Reads the flags from the functions of the manifest that declare targets.
enum PackageFlags {
    static let expected = [
        "kit": "strict", "code": "safe", "command": "safe", "helper": "safe", "program": "safe",
        "suite": "strict", "safeSuite": "safe",
    ]

    /// Of each function that declares a Swift target: the flags that it gives.
    static func functions(_ manifest: SourceFile) -> [String: String] {
        let tokens = manifest.tokens.map(\.text)
        var found: [String: String] = [:]
        var function = ""
        for index in tokens.indices.dropLast(2) {
            if tokens[index] == "func" { function = tokens[index + 1] }
            if tokens[index] == ".",
                ["target", "executableTarget", "testTarget"].contains(tokens[index + 1])
            {
                found[function] = "none"
            }
            if tokens[index] == "swiftSettings", tokens[index + 1] == ":",
                tokens[index + 2] == "Flags"
            {
                found[function] = tokens[index + 4]
            }
        }
        return found
    }
}
