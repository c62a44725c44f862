import Testing

@Suite("Retired words")
struct RetiredWordsTests {
    private static let words = RetiredWords(
        """
        | not | say |
        | --- | --- |
        | `foreign` in a name | external |
        | `TokenDesk` | `TokenAuthenticator` |
        | `Later` | `Scheduler` |
        | `foreign write` | external write |
        """)

    private func count(_ text: String) -> Int {
        Self.words.violations(in: SourceFile(path: "Sources/A/B.swift", text: text)).count
    }

    @Test(
        "are found in names and in prose",
        arguments: [
            "let a: ForeignDrain", "let isForeign = true", "// See `TokenDesk`.",
            "let tokenDesk = 1",
            "// Foreign writes are noted.", "let myTokenDesk = 1", "let a: Later",
            "\"The call isForeign fails.\"",
        ])
    func found(text: String) {
        #expect(count(text) == 1)
    }

    @Test(
        "leave other names alone",
        arguments: [
            "let foreignKeys = 1", "let a: ForeignKeyAudit", "\"_martlet.foreign_changes\"",
            "// A foreign table.",
            "name = 'foreignRevision'", "case external = \"foreignRevision\"",
            "let token = desk", "// Later calls throw.", "let isForeignKeyViolation = 1",
        ])
    func othersNames(text: String) {
        #expect(count(text) == 0)
    }

    @Test("the page has a table of them")
    func page() throws {
        #expect(try RetiredWords.own.get().count >= 30)
    }
}
