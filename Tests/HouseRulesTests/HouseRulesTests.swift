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
}
