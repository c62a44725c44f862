import Foundation
import Testing

/// What `docs/security.md` names must be there: a page that points at tests that are gone is worse
/// than none.
@Suite("docs/security.md")
struct SecurityPageTests {
    private static func page() throws -> String {
        try String(
            contentsOf: Repository.root.appendingPathComponent("docs/security.md"), encoding: .utf8)
    }

    /// The rows of the table of threats: number and text.
    private static func threats(_ page: String) -> [(number: Int, text: Substring)] {
        page.split(separator: "\n").compactMap { line in
            guard let found = line.prefixMatch(of: /\| (\d+) \|/), let number = Int(found.1) else {
                return nil
            }
            return (number, line)
        }
    }

    @Test("has each of the 24 threats once, with a check or the word that it does not apply yet")
    func rowsOfThreats() throws {
        let threats = Self.threats(try Self.page())
        #expect(threats.map(\.number) == Array(1...24))
        for threat in threats {
            #expect(
                threat.text.contains("](../") || threat.text.contains("does not apply yet"),
                "threat \(threat.number)")
        }
    }

    @Test("says nowhere that more threats have a check than have one")
    func countsOfThreats() throws {
        let page = try Self.page()
        let open = Self.threats(page).filter { $0.text.contains("does not apply yet") }
        #expect(open.map(\.number) == [13, 14, 15])
        #expect(page.contains("Rows 13, 14 and 15 have no"))
        for name in ["SECURITY.md", "CHANGELOG.md"] {
            let text = try String(
                contentsOf: Repository.root.appendingPathComponent(name), encoding: .utf8)
            #expect(text.contains("the \(24 - open.count) that apply"), "\(name)")
        }
    }

    @Test("names checks that exist")
    func checks() throws {
        let page = try Self.page()
        var count = 0
        for check in page.matches(of: /\]\(\.\.\/(Tests\/[^)]+\.swift)\)(?: “([^”]+)”)?/) {
            let file = Repository.root.appendingPathComponent(String(check.1))
            let text = try String(contentsOf: file, encoding: .utf8)
            let name = try #require(check.2, "\(check.1): name the test")
            #expect(text.contains("\"\(name)\""), "\(check.1) has no “\(name)”")
            count += 1
        }
        #expect(count >= 40)
    }

    @Test("is right that no package is taken from elsewhere")
    func packages() throws {
        let manifest = try #require(try Repository.files().first { $0.path == "Package.swift" })
        #expect(manifest.occurrences(of: [".", "package", "("]).isEmpty)
        #expect(manifest.occurrences(of: [".", "binaryTarget", "("]).isEmpty)
        #expect(manifest.occurrences(of: [".", "plugin", "("]).isEmpty)
    }
}
