import Foundation
import MartletModel
import Testing

@testable import MartletProtocol

@Suite("Kinds of problems")
struct ProblemKindTests {
    @Test("are all those that the pages list, so that no device takes one for a stranger's")
    func listed() throws {
        let docs = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("docs")
        var found: Set<String> = []
        for page in ["wire.md", "tokens.md"] {
            let text = try String(contentsOf: docs.appendingPathComponent(page), encoding: .utf8)
            for line in text.split(separator: "\n") {
                let cells = line.split(separator: "|").map {
                    $0.trimmingCharacters(in: .whitespaces)
                }
                for cell in cells.prefix(2) where cell.hasPrefix("`") {
                    for name in cell.split(separator: "`") where name.allSatisfy(\.isLetter) {
                        let isKind =
                            page == "wire.md" ? Int(cells[0]) != nil : name.hasPrefix("token")
                        if isKind { found.insert(String(name)) }
                    }
                }
            }
        }
        #expect(found.count > 30)
        #expect(found.subtracting(Problem.kinds).isEmpty)
    }

    @Test("of others count as nobody's")
    func problemKindsOfOthers() {
        for text in ["", "<html>", #"{"kind":"portal","detail":"Log in"}"#, #"{"kind":"busy""#] {
            let problem = SyncCoder.decodeProblem(Array(text.utf8), status: 403)
            #expect(!problem.isOfServer && problem == .unrecognized(status: 403))
            #expect(problem.detail.contains("Wi-Fi"))
        }
        let own = SyncCoder.decodeProblem(Array(#"{"kind":"busy","detail":"x"}"#.utf8), status: 503)
        #expect(own.isOfServer && own.detail == "x")
    }
}
