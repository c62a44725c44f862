import Foundation
import Testing

@Suite("docs/wire.md")
struct WireDocumentTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every `kind: "…"` in the sources of the server.
    private static func kinds() throws -> Set<String> {
        var kinds: Set<String> = []
        for target in ["HTTPKit", "MartletServer", "MartletServerCore"] {
            let folder = root.appendingPathComponent("Sources/\(target)")
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            for case let file as URL in files ?? .init() where file.pathExtension == "swift" {
                let text = try String(contentsOf: file, encoding: .utf8)
                for match in text.matches(of: /kind: "([a-zA-Z]+)"/) {
                    kinds.insert(String(match.output.1))
                }
            }
        }
        return kinds
    }

    @Test("lists every kind of problem the server can answer with")
    func listsKinds() throws {
        let text = try String(
            contentsOf: Self.root.appendingPathComponent("docs/wire.md"), encoding: .utf8)
        let kinds = try Self.kinds()
        #expect(kinds.count > 15)
        for kind in kinds.sorted() {
            #expect(text.contains("| `\(kind)` |"), "\(kind)")
        }
    }
}
