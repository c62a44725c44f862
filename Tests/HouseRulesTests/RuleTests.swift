import Testing

/// Each rule on code that breaks it and on code that comes close.
@Suite("Rules of the house can fail")
struct RuleTests {
    private func sentences(
        _ rule: Rule, _ code: String, at path: String = "Sources/MartletModel/Log/Entry.swift"
    ) -> Int {
        rule.check(SourceFile(path: path, text: code)).count
    }

    @Test("a file of 500 lines passes, one of 501 does not")
    func fileLength() {
        let passing = String(repeating: "\n", count: 500)
        #expect(sentences(.fileLength, passing) == 0)
        #expect(sentences(.fileLength, passing + "\n") == 1)
        #expect(sentences(.fileLength, passing + "\n", at: "docs/long.md") == 0)
    }

    @Test(
        "a body of 70 lines passes, one of 71 does not",
        arguments: ["func f() -> [Int] {", "init() {", "var size: Int {", "deinit {"])
    func functionLength(head: String) {
        func code(_ lines: Int) -> String {
            head + "\n" + String(repeating: "    g { \"}\" } // }\n", count: lines - 2) + "}\n"
        }
        #expect(sentences(.functionLength, code(70)) == 0)
        #expect(sentences(.functionLength, code(71)) == 1)
    }

    @Test("a requirement without a body does not take the next body for its own")
    func requirementsHaveNoBody() {
        let filler = String(repeating: "\n", count: 80)
        let code = "protocol P {\n    func f()\n    var a: Int\n}\nenum E {\(filler)}\n"
        #expect(sentences(.functionLength, code) == 0)
    }

    @Test(
        "clocks, randomness, waiting and sockets are refused in core targets",
        arguments: [
            "let a = Date()", "let a = UUID()", "try await Task.sleep(for: .seconds(1))",
            "DispatchQueue.main", "Int.random(in: 0..<4)", "list.shuffled()",
            "var g = SystemRandomNumberGenerator()", "socket(AF_INET, 1, 0)", "URLSession.shared",
        ])
    func nondeterminism(code: String) {
        for path in [
            "Sources/MartletModel/A.swift", "Sources/MartletProtocol/A.swift",
            "Sources/SQLiteRecords/A.swift", "Sources/MartletServerCore/A.swift",
            "Sources/MartletStore/A.swift", "Sources/MartletDevice/A.swift",
        ] {
            #expect(sentences(.nondeterminism, code, at: path) == 1, "\(path)")
        }
        #expect(sentences(.nondeterminism, code, at: "Sources/MartletServer/A.swift") == 0)
        let pool = "Sources/MartletStore/Pool/A.swift"
        #expect(sentences(.nondeterminism, code, at: pool) == 0)
        #expect(sentences(.nondeterminism, "// \(code)") == 0)
        #expect(sentences(.nondeterminism, "let a = \"\"\"\n\(code)\n\"\"\"") == 0)
    }

    @Test("randomness from a generator that was passed in is allowed")
    func injectedRandomness() {
        #expect(sentences(.nondeterminism, "Int.random(in: 0..<4, using: &generator)") == 0)
        #expect(sentences(.nondeterminism, "Date(timeIntervalSince1970: 0)") == 0)
    }

    @Test(
        "pointers are refused outside kits",
        arguments: [
            "unsafe f()", "var a: UnsafeRawPointer?", "x.withUnsafeBytes { _ in }",
            "nonisolated(unsafe) var a = 1", "\"\\(unsafe f())\"",
        ])
    func pointers(code: String) {
        #expect(sentences(.unsafe, code) == 1)
        #expect(sentences(.unsafe, code, at: "Sources/SQLiteKit/A.swift") == 0)
        #expect(sentences(.unsafe, "// " + code) == 0)
    }

    @Test("an unchecked Sendable needs a comment")
    func uncheckedSendable() {
        let code = "final class A: @unchecked Sendable {}"
        #expect(sentences(.uncheckedSendable, code) == 1)
        #expect(sentences(.uncheckedSendable, "// The lock protects it.\n" + code) == 0)
    }

    @Test("only its kit imports a C module")
    func cImports() {
        #expect(sentences(.cImports, "internal import CSQLite") == 1)
        let other = "Sources/CompressionKit/A.swift"
        #expect(sentences(.cImports, "import CSQLite", at: other) == 1)
        #expect(sentences(.cImports, "import CSQLite", at: "Sources/SQLiteKit/A.swift") == 0)
    }

    @Test("imports stand in Package.swift")
    func downwardImports() {
        let wire = "Sources/MartletProtocol/A.swift"
        #expect(sentences(.downwardImports, "import MartletModel", at: wire) == 0)
        #expect(sentences(.downwardImports, "import MartletStore") == 1)
        #expect(sentences(.downwardImports, "import struct Foundation.Data") == 1)
        let device = "Sources/Martlet/A.swift"
        #expect(sentences(.downwardImports, "public import MartletServer", at: device) == 1)
        #expect(sentences(.downwardImports, "import Foundation", at: device) == 0)
        #expect(sentences(.downwardImports, "", at: "Sources/Unknown/A.swift") == 1)
        let helper = "Tests/Support/SetTexts/A.swift"
        #expect(sentences(.downwardImports, "import Martlet", at: helper) == 1)
        let program = "Tests/Fuzzing/Program/A.swift"
        #expect(sentences(.downwardImports, "import Martlet", at: program) == 0)
    }

    @Test("Package.swift names targets that stand before, and that are imported")
    func manifest() {
        let manifest = Manifest(
            """
            let a = [
                system("CA", "liba-dev"),
                kit("AKit", "CA"),
                code("A", "AKit", "B"),
                code("B", "AKit"),
                suite(
                    "BTests", "A",
                    "B", in: "Tests/Odd", without: ["Data"]),
            ]
            """)
        #expect(manifest.targets.map(\.name) == ["CA", "AKit", "A", "B", "BTests"])
        let files = [
            SourceFile(path: "Sources/AKit/A.swift", text: "internal import CA"),
            SourceFile(path: "Sources/A/A.swift", text: "import AKit\nimport B"),
            SourceFile(path: "Sources/B/B.swift", text: "public import AKit"),
            SourceFile(path: "Tests/Odd/B.swift", text: "@testable import B"),
            SourceFile(path: "Tests/Odd/Data/B.swift", text: "import A"),
        ]
        #expect(
            manifest.faults(files) == [
                "A names B, which does not stand before it",
                "BTests names A, which none of its files imports",
            ])
    }

    @Test("forced tries and fatalError are refused")
    func forcedTries() {
        #expect(sentences(.forcedTry, "let a = try! f()") == 1)
        #expect(sentences(.forcedTry, "let a = try? f()") == 0)
        #expect(sentences(.forcedTry, "let a = try !f()") == 0)
        #expect(sentences(.forcedTry, "fatalError(\"no\")") == 1)
        #expect(sentences(.forcedTry, "let a = try! f()", at: "Tests/ATests/A.swift") == 1)
    }

    @Test("secrets are compared by the one function that takes the same time for all")
    func secrets() {
        let path = "Sources/MartletServer/Tokens/TokenIndex.swift"
        #expect(sentences(.secrets, "if entry.hash == hash {}", at: path) == 1)
        #expect(sentences(.secrets, "if a.token != other {}", at: path) == 1)
        #expect(sentences(.secrets, "if code == signature {}", at: path) == 1)
        #expect(sentences(.secrets, "if constantTimeEqual(entry.hash, hash) {}", at: path) == 0)
        #expect(sentences(.secrets, "if token == nil || nil != hash {}", at: path) == 0)
        #expect(sentences(.secrets, "if hash.count == 32 {}", at: path) == 0)
        #expect(sentences(.secrets, "if hash == after {}") == 0)
    }

    @Test("notes about unfinished work are refused, in comments too")
    func unfinished() {
        #expect(sentences(.unfinished, "// TO" + "DO: later") == 1)
        #expect(sentences(.unfinished, "<!-- FIX" + "ME -->", at: "docs/a.md") == 1)
        #expect(sentences(.unfinished, "let autoTO" + "DOs = 1") == 0)
    }

    @Test("folders that say nothing are refused")
    func folderNames() {
        #expect(sentences(.folderNames, "", at: "Sources/MartletModel/Utils/A.swift") == 1)
        #expect(sentences(.folderNames, "", at: "Sources/MartletModel/My Log/A.swift") == 1)
        #expect(sentences(.folderNames, "", at: "Sources/MartletModel/Log/Utils.swift") == 0)
    }

    @Test("paths of one machine are refused")
    func machinePaths() {
        #expect(sentences(.machinePaths, "cd /ho" + "me/someone/martlet") == 1)
        #expect(sentences(.machinePaths, "\"/wo" + "rk/main\"") == 1)
        #expect(sentences(.machinePaths, "see https://a.org/wo" + "rk/main") == 0)
    }

    @Test("a public type, function or subscript without a doc comment is refused")
    func documentation() {
        #expect(sentences(.documentation, "public struct A {}") == 1)
        #expect(sentences(.documentation, "public static func a() {}") == 1)
        #expect(sentences(.documentation, "// Not a doc comment.\npublic enum A {}") == 1)
        #expect(sentences(.documentation, "/// It is.\n@frozen\npublic enum A {}") == 0)
        #expect(sentences(.documentation, "public let a = 1") == 0)
        #expect(sentences(.documentation, "public func hash(into h: inout Hasher) {}") == 0)
    }

    @Test("a main public type without an example is refused, and only such a type needs one")
    func examples() {
        let example = "/// ```swift\n/// let a = 1\n/// ```\n"
        for comment in [
            "", "/// It is.\n", "/// It is.\n/// ```\n/// let a = 1\n/// ```\n",
            "/// ```swift\n/// ```\n", "/// ```swift\n/// let a = 1\n",
        ] {
            #expect(sentences(.examples, comment + "public enum Value {}") == 1, "\(comment)")
            #expect(sentences(.examples, example + comment + "public enum Other {}") == 0)
        }
        #expect(sentences(.examples, example + "public struct A {}\npublic enum Value {}") == 1)
        for code in [
            "public enum Value {}", "@frozen\npublic indirect enum Value {}",
            "public final class Value {}", "///\n/// It is.\npublic enum Value {}",
        ] {
            #expect(sentences(.examples, example + code) == 0, "\(code)")
        }
        #expect(sentences(.examples, "enum Value {}") == 0)
        #expect(sentences(.examples, "public struct A { public enum Value {} }") == 0)
        #expect(sentences(.examples, "public func Value() {}") == 0)
        #expect(sentences(.examples, "public enum Value {}", at: "Tests/A/B.swift") == 0)
    }

    @Test("a public function that throws has a line about that, and only such a function needs one")
    func throwing() {
        for code in [
            "/// It is.\npublic func a() throws {}",
            "/// It is.\npublic init(b: Int) async throws(A) {}",
            "/// It is.\n@inlinable\npublic static func a() throws -> Int {}",
            "/// - Throws: A.\npublic func a() throws {}\n/// It is.\npublic func d() throws {}",
        ] {
            #expect(sentences(.throwing, code) == 1, "\(code)")
            #expect(sentences(.throwing, code, at: "Sources/SQLiteKit/A.swift") == 0)
        }
        for code in [
            "/// - Throws: `A` if b.\npublic func a() throws {}", "func a() throws {}",
            "/// It is.\npublic func a(_ b: () throws -> Int) {}\nfunc c() throws {}",
            "public func a() throws {}", "/// It is.\npublic protocol P { func a() throws }",
            "/// It is.\n///\n/// - Throws: `A`.\n@discardableResult\npublic func a() throws -> Int {}",
            "/// It is.\npublic init(from decoder: any Decoder) throws {}",
            "/// It is.\npublic var a: Int { get throws { 1 } }",
        ] {
            #expect(sentences(.throwing, code) == 0, "\(code)")
        }
    }
}
