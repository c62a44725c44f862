import Foundation
import Testing

/// Every input that is kept, seeds and findings alike, through the same entry as in `scripts/fuzz`.
@Suite("Fuzz corpora")
struct FuzzCorpusTests {
    static var targets: [any FuzzTarget.Type] {
        [
            WireTarget.self, ChangesTarget.self, DeltasTarget.self, ManifestsTarget.self,
            FramesTarget.self, InflateTarget.self, HeadsTarget.self, TokensTarget.self,
            ValuesTarget.self, SnapshotsTarget.self, BlocksTarget.self, EventsTarget.self,
            HeadersTarget.self, RulesTarget.self,
        ]
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static func inputs(_ name: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: root.appendingPathComponent("Tests/Fuzzing/Corpora/\(name)"),
            includingPropertiesForKeys: nil
        ).sorted { $0.path < $1.path }
    }

    @Test("every kept input keeps every promise", arguments: targets.map { $0.name })
    func keptInputs(name: String) throws {
        let target = try #require(Self.targets.first { $0.name == name })
        let inputs = try Self.inputs(name)
        #expect(inputs.count >= 5)
        for input in inputs {
            let bytes = [UInt8](try Data(contentsOf: input))
            do {
                try target.check(bytes)
            } catch {
                Issue.record("\(name)/\(input.lastPathComponent): \(error)")
            }
        }
    }

    @Test(
        "inputs that are cut short or changed in one place keep them, too",
        arguments: targets.map { $0.name })
    func damagedInputs(name: String) throws {
        let target = try #require(Self.targets.first { $0.name == name })
        for input in try Self.inputs(name) {
            let bytes = [UInt8](try Data(contentsOf: input)).prefix(512)
            for offset in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 4)) {
                var changed = Array(bytes)
                changed[offset] ^= UInt8(truncatingIfNeeded: 1 + offset)
                for damaged in [changed, Array(bytes[..<offset])] {
                    do {
                        try target.check(damaged)
                    } catch {
                        Issue.record("\(input.lastPathComponent), byte \(offset): \(error)")
                    }
                }
            }
        }
    }

    @Test("a promise that is broken is told")
    func broken() {
        #expect(throws: BrokenPromise.self) { try hold(false, "a promise") }
        #expect(pieces(of: Array(0..<100)[...], seed: 7).joined().elementsEqual(0..<100))
        #expect(pieces(of: [1, 2, 3], seed: 0) == [[1], [2], [3]])
    }

    @Test("the script fuzzes the targets that are tested")
    func script() throws {
        let text = try String(
            contentsOf: Self.root.appendingPathComponent("scripts/fuzz"), encoding: .utf8)
        let listed = try #require(text.firstMatch(of: /order=\(([a-z\s]+)\)/))
        let names = listed.1.split { $0.isWhitespace }.map(String.init)
        #expect(Set(names) == Set(Self.targets.map { $0.name }))
        #expect(names.count == Self.targets.count)
    }
}
